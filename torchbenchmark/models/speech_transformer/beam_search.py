"""The likeliest sentences for an utterance, by a beam search that the host never waits for.

Every search takes the same steps, whatever it finds: a sentence that has ended stays in the beam, at the likelihood
that it has, and continues with nothing but its end. The decoder sees one character of each hypothesis in a step; keys
and values of those before are kept, in a tensor whose shape no step changes.
"""

import math

import torch
from torch import nn

from torchbenchmark.models.speech_transformer.network import SpeechTransformer, padding_mask

START, END = 1, 2  # among the characters; 0 stands for unknown ones


class BeamSearch(nn.Module):
    def __init__(self, network: SpeechTransformer, beam: int, steps: int) -> None:
        super().__init__()
        self.network = network
        self.beam = beam
        self.steps = steps
        self.vocabulary = network.decoder.embedding.num_embeddings
        first_alone = torch.full((beam,), -math.inf)
        first_alone[0] = 0.0  # all hypotheses begin alike: only one of them may be continued
        self.register_buffer("first_alone", first_alone, persistent=False)
        only_the_end = torch.full((self.vocabulary,), -math.inf)
        only_the_end[END] = 0.0
        self.register_buffer("only_the_end", only_the_end, persistent=False)
        # a number of the host's would be part of a compiled step, which would then be compiled for each
        self.register_buffer("places", torch.arange(steps), persistent=False)

    @torch.no_grad()  # what is kept is overwritten, and a search has no gradient
    def forward(self, features: torch.Tensor, frames: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Characters [batch, beam, steps], the best sentence first, and the logarithms of their likelihoods [batch,
        beam]."""
        utterances, device = features.size(0), features.device
        padding = padding_mask(frames, features.size(1))
        heard = self.remember_utterances(features, padding)
        said = self.nothing_said(features)
        sentences = torch.full((utterances, self.beam, self.steps), END, device=device)
        latest = torch.full((utterances, self.beam), START, device=device)
        likelihoods = self.first_alone.expand(utterances, -1)
        first_rows = torch.arange(utterances, device=device)[:, None] * self.beam
        for step in range(self.steps):
            if torch.compiler.is_dynamo_compiling():
                torch._dynamo.graph_break()  # else all steps become one graph; so each calls the compiled decoder
            scores = self.next_scores(latest, self.places[step : step + 1], said, heard, padding)
            gains = scores.log_softmax(dim=2, dtype=torch.float32)
            gains = torch.where((latest == END)[:, :, None], self.only_the_end, gains)
            likelihoods, chosen = (likelihoods[:, :, None] + gains).flatten(1).topk(self.beam, dim=1)
            parents, latest = chosen // self.vocabulary, chosen % self.vocabulary
            sentences = sentences.gather(1, parents[:, :, None].expand(-1, -1, self.steps))
            sentences[:, :, step] = latest
            said = said.index_select(2, (first_rows + parents).flatten())
        return sentences, likelihoods

    def remember_utterances(
        self, features: torch.Tensor, padding: torch.Tensor
    ) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """What each layer of the decoder attends to of the utterances, the same in all steps and for all hypotheses."""
        heard = self.network.encoder(features, padding)
        return [layer.attention.remember(heard) for layer in self.network.decoder.layers]

    def nothing_said(self, features: torch.Tensor) -> torch.Tensor:
        """Room for keys and values, [layers, 2, batch x beam, heads, steps, width of a head]."""
        layers = self.network.decoder.layers
        heads = layers[0].self_attention.heads
        width = self.network.decoder.embedding.embedding_dim
        return features.new_zeros(len(layers), 2, features.size(0) * self.beam, heads, self.steps, width // heads)

    def next_scores(
        self,
        latest: torch.Tensor,
        place: torch.Tensor,
        said: torch.Tensor,
        heard: list[tuple[torch.Tensor, torch.Tensor]],
        padding: torch.Tensor,
    ) -> torch.Tensor:
        """Scores [batch, beam, vocabulary] of what follows the latest characters [batch, beam], which stand at `place`
        [1] of their sentences; writes to `said`.

        The hypotheses of an utterance stand where a sequence has its positions, for all look at the same utterance;
        what they have said themselves is looked at one by one.
        """
        decoder = self.network.decoder
        future = decoder.future.index_select(0, place)[:, : self.steps]
        hidden = decoder.embed(latest, decoder.positions.index_select(0, place))
        for layer, (keys_said, values_said), (keys, values) in zip(decoder.layers, said, heard, strict=True):
            alone = hidden.flatten(0, 1).unsqueeze(1)
            key, value = layer.self_attention.remember(alone)
            keys_said.index_copy_(2, place, key.to(keys_said.dtype))
            values_said.index_copy_(2, place, value.to(values_said.dtype))
            recalled = layer.self_attention.recall(alone, keys_said, values_said, future)
            hidden = layer.self_attention_end(hidden, recalled.view_as(hidden))
            hidden = layer.attention_end(hidden, layer.attention.recall(hidden, keys, values, padding))
            hidden = layer.feed_forward_end(hidden, layer.feed_forward(hidden))
        return decoder.scores(hidden)
