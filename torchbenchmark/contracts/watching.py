"""Watches iterations of a model from all sides at once: its operators and where they run, what is built, drawn, copied,
read back from the device, and read from files."""

import contextlib
import functools
import random
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from torchbenchmark.contracts.contract import Case
from torchbenchmark.contracts.held import held_by
from torchbenchmark.model import BenchmarkModel

WARM = 2  # iterations before those that are watched: what is made once is made there
WATCHED = 3
_FROM_HOST_VALUES = (torch.tensor, torch.as_tensor, torch.asarray, torch.Tensor.new_tensor)
_INDEXING = ("index", "index_put", "index_put_", "_index_put_impl_")
_FILE_EVENTS = (
    *("open", "import", "socket.", "subprocess.", "urllib.", "sqlite3.", "mmap.", "ftplib.", "http.client."),
    *("glob.", "shutil.", "tempfile."),
    *(
        f"os.{name}"
        for name in ("listdir", "scandir", "mkdir", "remove", "rename", "rmdir", "fork", "exec", "posix_spawn")
    ),
    *("os.system", "os.truncate", "os.link", "os.symlink", "os.walk"),
)


@dataclass
class Seen:
    """What was seen in the watched iterations. Each name is of an operator, each text says what happened."""

    operators: list[Counter[str]] = field(default_factory=list)  # one an iteration
    elements: int = 0  # of all that operators gave in the last of them
    elsewhere: Counter[str] = field(default_factory=Counter)
    copies: Counter[str] = field(default_factory=Counter)
    reads: Counter[str] = field(default_factory=Counter)
    drawn: Counter[str] = field(default_factory=Counter)
    drawn_on_host: set[str] = field(default_factory=set)  # by generators that are none of torch
    built: Counter[str] = field(default_factory=Counter)
    files: Counter[str] = field(default_factory=Counter)
    idle: Counter[str] = field(default_factory=Counter)  # waits by the clock, and threads that are out of sight
    problem: Exception | None = None  # an iteration ended with it


def watched(case: Case, device: str, preset: str, fresh: BenchmarkModel | None = None) -> Seen:
    """What is seen of a fresh instance there, which may be given; each is watched once.

    At the size `full` on the device `meta` a training that has stages is its forward pass: the rest of a step is the
    same code at every size.
    """
    key = (device, preset)
    if key not in case.watched:
        model = fresh or case.build(device=device, preset=preset)
        staged = case.test == "train" and type(model).forward is not BenchmarkModel.forward
        forward_only = staged and device == "meta" and preset != case.preset
        case.watched[key] = watch(model, model.call_module if forward_only else model.invoke)
    return case.watched[key]


def watched_here(case: Case) -> Seen:
    """On the device and at the size of the case itself."""
    return watched(case, case.device, case.preset)


def watch(model: BenchmarkModel, work: Callable[[], object], *, warm: int = WARM, iterations: int = WATCHED) -> Seen:
    """Do the work, an iteration, some times, and then watch it. On `meta` nothing is read or drawn, and an iteration
    that needs a value ends there: that is `problem`. Elsewhere what an iteration raises is raised."""
    seen = Seen()
    device = model.device
    iterations = iterations if device != "meta" else 1
    try:
        for _ in range(warm if device != "meta" else 0):
            work()
        with contextlib.ExitStack() as stack:
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")  # to show one reads the source file
            stack.enter_context(torch.autograd.set_multithreading_enabled(False))  # else backward escapes the modes
            operators = Operators(device, seen, stack.enter_context(optimizer_steps(model)))
            stack.enter_context(host_draws(model, seen))
            stack.enter_context(file_access(seen))
            stack.enter_context(idling(seen))
            stack.enter_context(building(seen))
            stack.enter_context(FromHostValues(device, seen))
            stack.enter_context(operators)
            for _ in range(iterations):
                seen.operators.append(Counter())
                seen.elements = 0
                work()
    except Exception as problem:
        if device != "meta":
            raise
        seen.problem = problem.with_traceback(None)  # which holds the whole model
    return seen


@dataclass
class InOptimizer:
    """The optimizer that is stepping now, if any: it may keep its step count on the host, and read that."""

    now: torch.optim.Optimizer | None = None

    def counts(self, tensor: Any) -> bool:
        if self.now is None or not isinstance(tensor, torch.Tensor) or tensor.dim() > 0:
            return False
        return any(state.get("step") is tensor for state in self.now.state.values())


@contextlib.contextmanager
def optimizer_steps(model: BenchmarkModel) -> Iterator[InOptimizer]:
    inside = InOptimizer()

    def begin(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        inside.now = optimizer

    def end(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        inside.now = None

    hooks = [
        hook
        for optimizer in held_by(model).optimizers.values()
        for hook in (optimizer.register_step_pre_hook(begin), optimizer.register_step_post_hook(end))
    ]
    try:
        yield inside
    finally:
        for hook in hooks:
            hook.remove()


class FromHostValues(TorchFunctionMode):
    """Sees tensors made on the device out of Python's values, which the dispatcher is not told of."""

    def __init__(self, device: str, seen: Seen) -> None:
        super().__init__()
        self.device, self.seen = device, seen

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if function in _FROM_HOST_VALUES and result.numel() > 0 and self.device == result.device.type != "cpu":
            source = args[1 if function is torch.Tensor.new_tensor else 0] if args else None
            if not (isinstance(source, torch.Tensor) and source.device.type == self.device):
                self.seen.copies[f"{function.__name__} puts values of the host onto the device"] += 1
        return result


@dataclass(frozen=True)
class Kind:
    """What an operator can do beside computing."""

    name: str
    draws: bool
    reads: bool  # a value, or how many values there are


@functools.cache
def kind_of(function: Any) -> Kind:
    name, tags = function.overloadpacket.__name__, function.tags
    reads = torch.Tag.data_dependent_output in tags or torch.Tag.dynamic_output_shape in tags or name == "equal"
    return Kind(name, torch.Tag.nondeterministic_seeded in tags, reads)


class Operators(TorchDispatchMode):
    """Sees every operator, with the devices of what goes in and what comes out."""

    def __init__(self, device: str, seen: Seen, optimizer: InOptimizer) -> None:
        super().__init__()
        self.device, self.seen, self.optimizer = device, seen, optimizer

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        kind = kind_of(function)
        name = kind.name
        self.seen.operators[-1][name] += 1
        operands = [*_tensors(args), *_tensors(kwargs.values())]
        if kind.reads:
            self._note_reads(name, args)
        if self.device != "cpu":
            self._note_copies(name, args, kwargs, operands)
        if kind.draws and self.device != "meta":
            before = _generator_states(operands, kwargs)
            result = function(*args, **kwargs)
            if _generator_states(operands, kwargs) != before:
                self.seen.drawn[name] += 1
        else:
            result = function(*args, **kwargs)
        for tensor in _tensors((result,)):
            self.seen.elements += tensor.numel()
            if tensor.dim() > 0 and tensor.device.type != self.device:
                self.seen.elsewhere[f"{name} gives a tensor on {tensor.device.type}"] += 1
        return result

    def _note_reads(self, name: str, args: Any) -> None:
        operands = [tensor for tensor in _tensors(args) if tensor.device.type == self.device]
        if not operands or any(self.optimizer.counts(tensor) for tensor in operands):
            return
        if name != "index":
            self.seen.reads[name] += 1
        elif any(index.dtype in (torch.bool, torch.uint8) for index in _tensors(args[1:])):
            self.seen.reads["index by a mask"] += 1

    def _note_copies(self, name: str, args: Any, kwargs: Any, operands: list[torch.Tensor]) -> None:
        if "pin_memory" in name and name != "is_pinned":
            self.seen.copies[f"{name} pins memory of the host"] += 1
            return
        devices = [tensor.device.type for tensor in operands]
        if name == "_to_copy" and kwargs.get("device") is not None:
            devices.append(kwargs["device"].type)
        if name in ("_to_copy", "copy_"):
            if len(set(devices)) > 1 and self.optimizer.now is None:
                source = devices[1] if name == "copy_" else devices[0]
                goal = devices[0] if name == "copy_" else devices[-1]
                self.seen.copies[f"{name} from {source} to {goal}"] += 1
            return
        large = {tensor.device.type for tensor in operands if tensor.dim() > 0}
        if len(large | {self.device}) > 1 and self.device in large:
            if name in _INDEXING:
                self.seen.copies[f"{name} by an index that lies on {' and '.join(sorted(large - {self.device}))}"] += 1
            else:
                self.seen.elsewhere[f"{name} is given tensors on {' and '.join(sorted(large))}"] += 1


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _generator_states(operands: list[torch.Tensor], kwargs: Any) -> list[bytes]:
    """Of the generators that an operator may draw from: the one it is given, or the default ones."""
    if (given := kwargs.get("generator")) is not None:
        return [bytes(given.get_state().numpy())]
    states = [bytes(torch.default_generator.get_state().numpy())]
    device = kwargs.get("device")
    if any(tensor.is_cuda for tensor in operands) or (device is not None and torch.device(device).type == "cuda"):
        states.append(bytes(torch.cuda.get_rng_state().numpy()))
    return states


@contextlib.contextmanager
def host_draws(model: BenchmarkModel, seen: Seen) -> Iterator[None]:
    """Sees draws from the generators of Python and numpy, and from such as the model holds."""
    readers: dict[str, Callable[[], object]] = {
        "random": random.getstate,
        "numpy.random": lambda: _state_of(numpy.random.get_state(legacy=False)),
    }
    for path, generator in held_by(model).generators.items():
        if isinstance(generator, random.Random):
            readers[path] = generator.getstate
        elif isinstance(generator, numpy.random.Generator):
            readers[path] = lambda one=generator: _state_of(one.bit_generator.state)
        elif isinstance(generator, numpy.random.RandomState):
            readers[path] = lambda one=generator: _state_of(one.get_state(legacy=False))
    before = {name: read() for name, read in readers.items()}
    yield
    seen.drawn_on_host |= {name for name, read in readers.items() if read() != before[name]}


def _state_of(state: Any) -> object:
    """A state of numpy as something that compares as a whole."""
    if isinstance(state, Mapping):
        return {key: _state_of(value) for key, value in state.items()}
    return state.tobytes() if isinstance(state, numpy.ndarray) else state


@contextlib.contextmanager
def building(seen: Seen) -> Iterator[None]:
    """Sees networks that are built or copied, parameters and optimizers. A module without parameters and buffers, as a
    loss function is, counts as none."""
    made: list[nn.Module] = []
    init, set_state = nn.Module.__init__, nn.Module.__setstate__
    new_parameter, init_optimizer = nn.Parameter.__new__, torch.optim.Optimizer.__init__

    def noted_init(self: nn.Module, *args: Any, **kwargs: Any) -> None:
        made.append(self)
        init(self, *args, **kwargs)

    def noted_set_state(self: nn.Module, state: Any) -> None:
        made.append(self)
        set_state(self, state)

    def noted_parameter(cls: type, *args: Any, **kwargs: Any) -> Any:
        seen.built["a parameter"] += 1
        return new_parameter(cls, *args, **kwargs)

    def noted_optimizer(self: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
        seen.built[f"the optimizer {type(self).__name__}"] += 1
        init_optimizer(self, *args, **kwargs)

    nn.Module.__init__, nn.Module.__setstate__ = noted_init, noted_set_state
    nn.Parameter.__new__, torch.optim.Optimizer.__init__ = staticmethod(noted_parameter), noted_optimizer
    try:
        yield
    finally:
        nn.Module.__init__, nn.Module.__setstate__ = init, set_state
        nn.Parameter.__new__, torch.optim.Optimizer.__init__ = staticmethod(new_parameter), init_optimizer
        for module in made:
            if "_parameters" in vars(module) and any(True for _ in [*module.parameters(), *module.buffers()]):
                seen.built[f"the network {type(module).__name__}"] += 1


@contextlib.contextmanager
def idling(seen: Seen) -> Iterator[None]:
    """Sees sleep, and threads of Python, whose operators no mode sees."""
    sleep, start = time.sleep, threading.Thread.start

    def noted_sleep(seconds: float) -> None:
        seen.idle["time.sleep"] += 1
        sleep(seconds)

    def noted_start(self: threading.Thread) -> None:
        seen.idle["threading.Thread"] += 1
        start(self)

    time.sleep, threading.Thread.start = noted_sleep, noted_start
    try:
        yield
    finally:
        time.sleep, threading.Thread.start = sleep, start


_listening: list[Seen] = []  # an audit hook cannot be taken out, so there is one that listens for whoever is here


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if _listening and event.startswith(_FILE_EVENTS):
        _listening[-1].files[f"{event} {str(arguments[0])[:200] if arguments else ''}".strip()] += 1


_installed = False


@contextlib.contextmanager
def file_access(seen: Seen) -> Iterator[None]:
    """Sees files that are opened, folders that are read, processes and connections that are started."""
    global _installed
    if not _installed:
        sys.addaudithook(_hear)
        _installed = True
    _listening.append(seen)
    try:
        yield
    finally:
        _listening.remove(seen)
