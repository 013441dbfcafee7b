"""What the models of one family share: networks, data, losses, optimizers. None of it is a model that can be run.

A model's workload hash covers the files of this folder that it imports, so that a change here starts a new segment for
those models and for no other.
"""
