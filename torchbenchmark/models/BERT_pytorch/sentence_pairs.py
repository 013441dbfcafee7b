"""Pairs of sentences out of random words, some of the words hidden: what BERT is pre-trained on."""

from dataclasses import dataclass

import torch

from torchbenchmark.families.sentence_lengths import sentence_lengths

PADDING, SEPARATOR, START, MASK, SPECIAL = 0, 2, 3, 4, 5  # ids below SPECIAL are no words
NOT_PREDICTED = PADDING
SEGMENTS = 3  # padding, first sentence, second sentence
PREDICTED = 0.15  # of the words; of these 80 % are masked, 10 % replaced by another word and 10 % left
MASKED, REPLACED = 0.8, 0.1
TYPICAL_FILLING, SPREAD = 0.7, 0.3  # the median pair fills so much of a row


@dataclass(frozen=True)
class SentencePairs:
    """One row each. `labels` is the word at the places that are to be predicted and NOT_PREDICTED elsewhere."""

    tokens: torch.Tensor
    segments: torch.Tensor
    labels: torch.Tensor
    is_next: torch.Tensor


def make_sentence_pairs(pairs: int, tokens: int, vocabulary: int) -> SentencePairs:
    """`pairs` rows of `tokens` places: start, first sentence, separator, second sentence, separator, padding.

    The sentences of a pair are equally long. The first word of each row is predicted, so that no row goes without.
    """
    lengths = torch.tensor(sentence_lengths(pairs, tokens * TYPICAL_FILLING, SPREAD, tokens // 2, tokens)).unsqueeze(1)
    middle = lengths // 2
    place = torch.arange(tokens)
    padding = place >= lengths
    segments = (1 + (place > middle).long()).masked_fill(padding, PADDING)

    words = torch.randint(SPECIAL, vocabulary, (pairs, tokens))
    words = words.masked_fill((place == middle) | (place == lengths - 1), SEPARATOR)
    words = words.masked_fill(place == 0, START).masked_fill(padding, PADDING)

    predicted = ((torch.rand(pairs, tokens) < PREDICTED) | (place == 1)) & (words >= SPECIAL)
    fate = torch.rand(pairs, tokens)
    others = torch.randint(SPECIAL, vocabulary, (pairs, tokens))
    shown = words.masked_fill(predicted & (fate < MASKED), MASK)
    shown = torch.where(predicted & (fate >= MASKED) & (fate < MASKED + REPLACED), others, shown)
    return SentencePairs(
        tokens=shown,
        segments=segments,
        labels=words.masked_fill(~predicted, NOT_PREDICTED),
        is_next=torch.randint(2, (pairs,)),
    )
