"""The inside algorithm (Baker 1979): how probable a probabilistic context-free grammar makes a sentence.

Logarithms all through, and all spans of one width at once, for all sentences: a sum over splits and rules is one matrix
product over splits and one over rules, of exponentials that are shifted so that the largest is 1.
"""

import torch


def log_partition(words: torch.Tensor, rules: torch.Tensor, roots: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """[batch]: the logarithm of the summed probabilities of all trees over each sentence.

    `words` [batch, words, terminals] is log P(word | terminal), `rules` [nonterminals, symbols, symbols] that of a
    nonterminal's two children, `roots` [nonterminals] that of the symbol on top. Symbols are the nonterminals and then
    the terminals. `lengths` [batch] counts the words of each sentence, two at least; after them is padding.
    """
    nonterminals, count = roots.shape[0], words.shape[1]
    by_children = rules.exp().permute(1, 2, 0)
    inner, outer = by_children[:nonterminals], by_children[nonterminals:]
    two_spans = inner[:, :nonterminals].flatten(0, 1)
    span_and_word = inner[:, nonterminals:].flatten(0, 1)
    word_and_span = outer[:, :nonterminals].flatten(0, 1)
    two_words = outer[:, nonterminals:].flatten(0, 1)

    word = words.unsqueeze(2)
    spans = join(word[:, :-1], word[:, 1:], two_words)  # [batch, starts, nonterminals], here of width 2
    from_first_word = [spans[:, 0]]
    # For each span that is looked for, the narrower ones that begin with it, by rising width, and those that end with
    # it, by falling width: what stands at the same place in both makes up the whole. [batch, starts, splits, _]
    left, right = spans[:, :-2, None], spans[:, 2:, None]
    for width in range(3, count + 1):
        narrower = spans.unsqueeze(2)
        ways = [
            join(word[:, : 1 - width], narrower[:, 1:], word_and_span),
            join(narrower[:, :-1], word[:, width - 1 :], span_and_word),
        ]
        if width > 3:
            ways.append(join(left, right, two_spans))
            left = torch.cat([left[:, :-1], narrower[:, :-2]], dim=2)
            right = torch.cat([narrower[:, 2:], right[:, 1:]], dim=2)
        spans = torch.logsumexp(torch.stack(ways), dim=0)
        from_first_word.append(spans[:, 0])
    by_width = torch.logsumexp(torch.stack(from_first_word, dim=1) + roots, dim=2)
    return by_width.gather(1, lengths.unsqueeze(1) - 2).squeeze(1)


def join(left: torch.Tensor, right: torch.Tensor, rules: torch.Tensor) -> torch.Tensor:
    """[batch, starts, nonterminals]: the log-sum over splits, left symbols b and right symbols c of
    `left[..., split, b] + right[..., split, c] + log(rules[(b, c), nonterminal])`.

    A shift changes nothing but the rounding, so no gradient goes through it. Autocast may multiply in 16 bits, but
    logarithms keep the type that they have.
    """
    left_top = left.detach().amax(dim=3, keepdim=True)
    right_top = right.detach().amax(dim=3, keepdim=True)
    top = (left_top + right_top).amax(dim=2, keepdim=True)
    left_share = (left + (right_top - top)).exp()
    right_share = (right - right_top).exp()
    pairs = torch.matmul(left_share.transpose(2, 3), right_share)
    sums = torch.matmul(pairs.flatten(2), rules)
    tiny = 1e-30  # in place of a sum that underflows: its logarithm and gradient stay finite
    return sums.to(left.dtype).clamp_min(tiny).log() + top.squeeze(3)
