"""Sentences of random words, as long as those of Multi30k, which are the captions of pictures."""

import torch

from torchbenchmark.families.sentence_lengths import sentence_lengths

PADDING, START, END, SPECIAL = 1, 2, 3, 4  # 0 is the unknown word; ids below SPECIAL are no words
SPREAD = 0.32
SHORTEST, LONGEST = 4, 40  # in words


def make_sentences(sentences: int, median: int, vocabulary: int) -> torch.Tensor:
    """[sentences, places]: start, words, end, and padding up to the end of the longest."""
    words = sentence_lengths(sentences, median, SPREAD, SHORTEST, LONGEST)
    place = torch.arange(max(words) + 2)
    last = torch.tensor(words).unsqueeze(1) + 1
    tokens = torch.randint(SPECIAL, vocabulary, (sentences, place.shape[0]))
    return tokens.masked_fill(place == 0, START).masked_fill(place == last, END).masked_fill(place > last, PADDING)
