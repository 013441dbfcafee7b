"""The model suite and the measuring engine of torchbench-sentinel. Importing this package imports nothing heavy."""

__version__ = "0.1.0"
