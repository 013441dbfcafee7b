"""The models of text in plain torch, and the grammar. Their numbers are counted by hand: nobody has published them."""

from published.facts import Published
from published.first_models import transformer_layer


def linear(inputs: int, outputs: int) -> int:
    """Parameters of a layer with biases."""
    return inputs * outputs + outputs


def norm(width: int) -> int:
    return 2 * width


def bert_parameters(vocabulary: int = 20_005, width: int = 768, inner: int = 3072) -> int:
    layer = 4 * linear(width, width) + linear(width, inner) + linear(inner, width) + 2 * norm(width)
    embeddings = (vocabulary + 3) * width
    return embeddings + 12 * layer + linear(width, 2) + linear(width, vocabulary)


def bert(vocabulary: int = 20_005, width: int = 768, inner: int = 3072, pairs: int = 64, tokens: int = 128) -> int:
    token = 12 * transformer_layer(width, inner, tokens) + width * vocabulary
    return pairs * (tokens * token + width * 2)


def transformer_parameters(vocabulary: int = 9521, width: int = 512, inner: int = 2048) -> int:
    attention = 4 * width**2 + norm(width)
    feed_forward = linear(width, inner) + linear(inner, width) + norm(width)
    embedding = vocabulary * width + norm(width)
    return 2 * embedding + 6 * (attention + feed_forward) + 6 * (2 * attention + feed_forward) + vocabulary * width


def transformer(
    vocabulary: int = 9521, width: int = 512, inner: int = 2048, batch: int = 128, source: int = 30, target: int = 31
) -> int:
    """Beside the layers of encoder and decoder the decoder looks into what the encoder made: of the four projections
    two are of the target, two of the source."""
    encoder = source * transformer_layer(width, inner, source)
    into_encoder = 2 * target * width**2 + 2 * source * width**2 + 2 * target * source * width
    decoder = target * transformer_layer(width, inner, target) + into_encoder
    return batch * (6 * (encoder + decoder) + target * width * vocabulary)


def grammar_parameters(vocabulary: int = 5000, terminals: int = 30, nonterminals: int = 30, width: int = 256) -> int:
    embeddings = vocabulary + terminals + nonterminals + (terminals + nonterminals) ** 2 + nonterminals + 1
    return embeddings * width + 2 * 5 * linear(width, width)


def grammar(vocabulary: int = 5000, symbols: int = 30, width: int = 256, batch: int = 100, words: int = 29) -> int:
    """With as many terminals as nonterminals. A join multiplies the pairs of each split, and the sums by the rules."""
    layers = 2 * 5 * symbols * width**2
    probabilities = symbols * vocabulary * width + symbols * (2 * symbols) ** 2 * width + symbols * width
    rules = symbols**3
    spans = (words - 1) * (symbols**2 + rules)
    for spanned in range(3, words + 1):
        splits_in_spans = spanned - 3
        span = 2 * (symbols**2 + rules) + splits_in_spans * symbols**2 + (rules if splits_in_spans else 0)
        spans += (words - spanned + 1) * span
    return layers + probabilities + batch * spans


PUBLISHED = {
    "BERT_pytorch": Published(
        bert_parameters(), (64, 128), (64, 128), {"betas": (0.9, 0.999), "weight_decay": 0.01}, bert()
    ),
    "attention_is_all_you_need_pytorch": Published(
        transformer_parameters(), (128, 30), (128, 30), {"betas": (0.9, 0.98), "eps": 1e-9}, transformer()
    ),
    "fastNLP": Published(95_812 * 64 + linear(64, 4), (32,), (32,), {"lr": 4.0, "momentum": 0}, 32 * 64 * 4),
    "pytorch_struct": Published(
        grammar_parameters(), (100, 29), (100, 29), {"lr": 1e-3, "betas": (0.75, 0.999)}, grammar()
    ),
}
