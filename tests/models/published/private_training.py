"""Private training of a ResNet-18 for ten classes, whose group normalizations have the parameters of its batch ones."""

from published.facts import ADAM, Published

IMAGES = (64, 3, 32, 32)

PUBLISHED = {"opacus_cifar10": Published(11_689_512 - 513 * (1000 - 10), IMAGES, IMAGES, ADAM)}
