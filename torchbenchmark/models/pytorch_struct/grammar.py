"""A neural probabilistic context-free grammar (Kim et al. 2019): the probabilities of rules and words come from
embeddings of the symbols."""

import torch
from torch import nn
from torch.nn import functional

from torchbenchmark.models.pytorch_struct.inside import log_partition


class NeuralGrammar(nn.Module):
    """From sentences to their log-probabilities, each the sum over all trees.

    Logarithms have 32 bits whatever the weights have: near -130, where a sentence's lie, 16 bits count in steps of an
    eighth or of one.
    """

    def __init__(self, vocabulary: int, terminals: int, nonterminals: int, width: int) -> None:
        super().__init__()
        symbols = nonterminals + terminals
        self.symbols = symbols
        self.words = nn.Parameter(torch.empty(vocabulary, width))
        self.terminals = nn.Parameter(torch.empty(terminals, width))
        self.nonterminals = nn.Parameter(torch.empty(nonterminals, width))
        self.child_pairs = nn.Parameter(torch.empty(symbols * symbols, width))
        self.roots = nn.Parameter(torch.empty(nonterminals, width))
        self.start = nn.Parameter(torch.empty(1, width))
        self.terminal_layers = ResidualLayers(width)
        self.root_layers = ResidualLayers(width)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)

    def forward(self, words: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """`words` is [batch, words], padded; sentence i has `lengths[i]` words. Log-probabilities are [batch]."""
        by_terminal = functional.linear(self.terminal_layers(self.terminals), self.words).log_softmax(
            dim=1, dtype=torch.float32
        )
        rules = functional.linear(self.nonterminals, self.child_pairs).log_softmax(dim=1, dtype=torch.float32)
        roots = functional.linear(self.start, self.root_layers(self.roots)).log_softmax(dim=1, dtype=torch.float32)
        return log_partition(
            words=functional.embedding(words, by_terminal.t()),
            rules=rules.unflatten(1, (self.symbols, self.symbols)),
            roots=roots.squeeze(0),
            lengths=lengths,
        )


class ResidualLayers(nn.Module):
    """A linear layer, and two pairs of layers that add to it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.entrance = nn.Linear(width, width)
        self.first = layer_pair(width)
        self.second = layer_pair(width)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        features = self.entrance(features)
        features = features + self.first(features)
        return features + self.second(features)


def layer_pair(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
