"""The equation of state of sea water with 48 coefficients, and the slope of its enthalpy.

Specific volume is a ratio of polynomials (McDougall, Barker, Feistel and Jackett 2013; the coefficients are those of
the TEOS-10 toolbox GSW 3.0):

    v = (a0 + a1 p + a2 p^2 + a3 p^3) / (b0 + 2 b1 p + b2 p^2)

whose a and b are polynomials in absolute salinity S [g/kg], its root, and conservative temperature T [degrees C]; p
is sea pressure [dbar] and v is in m^3/kg. Dynamic enthalpy is the integral of v over pressure from 0 (IOC et al.
2010).

The coefficients stand where they are used: TorchScript, which V1 measures, reads no numbers of a module.
"""

import torch

# a0 .. a3 of the numerator and b0 .. b2 of the denominator
Polynomials = tuple[
    torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor
]  # fmt: skip


def polynomials(s: torch.Tensor, t: torch.Tensor) -> Polynomials:
    root = s.sqrt()
    a0 = (
        1.0
        + t
        * (2.775927747785646e-3 + t * (-2.349607444135925e-5 + t * (1.119513357486743e-6 + 6.743689325042773e-10 * t)))
        + s
        * (
            -7.521448093615448e-3
            + t
            * (
                -2.764306979894411e-5
                + t * (1.262937315098546e-7 + t * (9.527875081696435e-10 - 1.811147201949891e-11 * t))
            )
            + 5.419326551148740e-6 * s
            + root
            * (
                -3.303308871386421e-5
                + t
                * (
                    3.801564588876298e-7
                    + t * (-7.672876869259043e-9 + t * (-4.634182341116144e-11 + 2.681097235569143e-12 * t))
                )
            )
        )
    )
    a1 = (
        -2.742185394906099e-5
        + t * (-3.212746477974189e-7 + t * (3.191413910561627e-9 - 1.931012931541776e-12 * t))
        + s * (-1.105097577149576e-7 + 6.211426728363857e-10 * t)
    )
    a2 = -1.119011592875110e-10 + t * (-1.941660213148725e-11 - 1.864826425365600e-14 * t + 1.119522344879478e-14 * s)
    a3 = -1.200507748551599e-15 + 6.057902487546866e-17 * t
    b0 = (
        9.998420897506056e2
        + t * (2.839940833161907 + t * (-3.147759265588511e-2 + 1.181805545074306e-3 * t))
        + s
        * (
            -6.698001071123802
            + t * (-2.986498947203215e-2 + 2.327859407479162e-4 * t)
            + root
            * (
                -3.988822378968490e-2
                + t * (5.095422573880500e-4 + t * (-1.426984671633621e-5 + 1.645039373682922e-7 * t))
            )
        )
    )
    b1 = 0.5 * (
        -2.233269627352527e-2
        + t * (-3.436090079851880e-4 + 3.726050720345733e-6 * t)
        + s * (-1.806789763745328e-4 + 6.876837219536232e-7 * t)
    )
    b2 = -3.087032500374211e-7 + t * (-1.988366587925593e-8 - 1.061519070296458e-11 * t) + 1.550932729220080e-10 * s
    return a0, a1, a2, a3, b0, b1, b2


def polynomial_slopes(s: torch.Tensor, t: torch.Tensor) -> Polynomials:
    """The derivatives of `polynomials` with respect to temperature."""
    root = s.sqrt()
    a0 = (
        2.775927747785646e-3
        + t * (2 * -2.349607444135925e-5 + t * (3 * 1.119513357486743e-6 + 4 * 6.743689325042773e-10 * t))
        + s
        * (
            -2.764306979894411e-5
            + t * (2 * 1.262937315098546e-7 + t * (3 * 9.527875081696435e-10 - 4 * 1.811147201949891e-11 * t))
            + root
            * (
                3.801564588876298e-7
                + t * (2 * -7.672876869259043e-9 + t * (3 * -4.634182341116144e-11 + 4 * 2.681097235569143e-12 * t))
            )
        )
    )
    a1 = (
        -3.212746477974189e-7
        + t * (2 * 3.191413910561627e-9 - 3 * 1.931012931541776e-12 * t)
        + 6.211426728363857e-10 * s
    )
    a2 = -1.941660213148725e-11 - 2 * 1.864826425365600e-14 * t + 1.119522344879478e-14 * s
    a3 = torch.full_like(t, 6.057902487546866e-17)
    b0 = (
        2.839940833161907
        + t * (2 * -3.147759265588511e-2 + 3 * 1.181805545074306e-3 * t)
        + s
        * (
            -2.986498947203215e-2
            + 2 * 2.327859407479162e-4 * t
            + root * (5.095422573880500e-4 + t * (2 * -1.426984671633621e-5 + 3 * 1.645039373682922e-7 * t))
        )
    )
    b1 = 0.5 * (-3.436090079851880e-4 + 2 * 3.726050720345733e-6 * t + 6.876837219536232e-7 * s)
    b2 = -1.988366587925593e-8 - 2 * 1.061519070296458e-11 * t
    return a0, a1, a2, a3, b0, b1, b2


def enthalpy_slope(s: torch.Tensor, t: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    """The derivative of dynamic enthalpy with respect to conservative temperature, in J/(kg K).

    Division of the polynomials in p leaves v = q0 + q1 p + (n + m p) / d with d = b0 + 2 b1 p + b2 p^2, and the
    integral is

        q0 p + q1 p^2 / 2 + m / (2 b2) ln(d / b0) + (n - m b1 / b2) j,    j = integral of 1 / d

    j is a logarithm too, for d has real roots: b2 is negative in every sea. The derivative is taken term by term; a
    name that begins with `d` is that of the rest of the name.
    """
    a0, a1, a2, a3, b0, b1, b2 = polynomials(s, t)
    da0, da1, da2, da3, db0, db1, db2 = polynomial_slopes(s, t)

    q1 = a3 / b2
    dq1 = (da3 - q1 * db2) / b2
    q0 = (a2 - 2 * b1 * q1) / b2
    dq0 = (da2 - 2 * (db1 * q1 + b1 * dq1) - q0 * db2) / b2
    m = a1 - b0 * q1 - 2 * b1 * q0
    dm = da1 - db0 * q1 - b0 * dq1 - 2 * (db1 * q0 + b1 * dq0)
    n = a0 - b0 * q0
    dn = da0 - db0 * q0 - b0 * dq0

    bottom = b0 + p * (2 * b1 + p * b2)
    dbottom = db0 + p * (2 * db1 + p * db2)
    logarithm = torch.log(bottom / b0)
    dlogarithm = dbottom / bottom - db0 / b0

    root = torch.sqrt(b1 * b1 - b0 * b2)
    droot = (b1 * db1 - 0.5 * (db0 * b2 + b0 * db2)) / root
    middle = b1 + b2 * p
    dmiddle = db1 + db2 * p
    j = torch.log((middle - root) * (b1 + root) / ((middle + root) * (b1 - root))) / (2 * root)
    dj = (
        (dmiddle - droot) / (middle - root)
        + (db1 + droot) / (b1 + root)
        - (dmiddle + droot) / (middle + root)
        - (db1 - droot) / (b1 - root)
    ) / (2 * root) - j * droot / root

    share = m / b2
    dshare = (dm - share * db2) / b2
    rest = n - share * b1
    drest = dn - dshare * b1 - share * db1
    slope = p * (dq0 + 0.5 * p * dq1) + 0.5 * (dshare * logarithm + share * dlogarithm) + drest * j + rest * dj
    return 1e4 * slope  # pascals in a decibar
