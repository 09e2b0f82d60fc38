"""Data sets, loaders, files and random numbers of torch, Paddle, OneFlow and MegEngine."""

from __future__ import annotations

import contextlib
import io
import zipfile

import numpy as np
import pytest

import primgraph as pg
import primgraph.compat.megengine as megengine
import primgraph.compat.oneflow as flow
import primgraph.compat.paddle as paddle
import primgraph.compat.torch as torch
from primgraph.compat.oneflow.utils.data import DataLoader as FlowLoader
from primgraph.compat.torch.utils.checkpoint import checkpoint, checkpoint_sequential
from primgraph.compat.torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from primgraph.errors import LoadError, OptionError


class Logged(TensorDataset):
    """Tensor data set that notes the positions of single samples."""

    def __init__(self, *tensors):
        super().__init__(*tensors)
        self.seen = []

    def __getitem__(self, index):
        self.seen.append(index)
        return super().__getitem__(index)


def test_batches_of_tensors_are_those_of_single_samples():
    x, y = torch.arange(12.0).reshape(6, 2), torch.arange(6)
    plain, logged = TensorDataset(x, y), Logged(x, y)
    for data, other in ((plain, logged), (Subset(plain, [4, 1, 0]), Subset(logged, [4, 1, 0]))):
        for a, b in zip(DataLoader(data, 4), DataLoader(other, 4), strict=True):
            assert all(torch.equal(s, t) for s, t in zip(a, b, strict=True))
            assert [t.dtype for t in a] == [t.dtype for t in b]
    assert logged.seen


def test_batches_of_tensors_have_their_derivatives():
    x = torch.arange(4.0).requires_grad_()
    ((batch,),) = list(DataLoader(TensorDataset(x), 4))
    (batch**2).sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 4.0, 6.0]


def test_shuffled_batches_follow_from_the_generator():
    def order(seed):
        loader = DataLoader(
            range(20), 3, shuffle=True, generator=torch.Generator().manual_seed(seed)
        )
        return torch.cat(list(loader)).tolist()

    assert order(3) == order(3) != order(4)
    assert sorted(order(3)) == list(range(20))
    loader = DataLoader(range(20), 20, shuffle=True)
    torch.manual_seed(5)
    first, second = next(iter(loader)), next(iter(loader))
    assert first.tolist() != second.tolist()
    torch.manual_seed(5)
    assert next(iter(loader)).tolist() == first.tolist()


def test_workers_load_the_batches_of_the_process():
    with_workers = DataLoader(range(5), 2, num_workers=2, prefetch_factor=2)
    assert [b.tolist() for b in with_workers] == [[0, 1], [2, 3], [4]]


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(5))


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 0},
        {"num_workers": -1},
        {"shuffle": True, "sampler": [0]},
        {"batch_sampler": BatchSampler(range(5), 2, False), "batch_size": 2},
        {"batch_size": None, "drop_last": True},
        {"prefetch_factor": 2},
    ],
)
def test_contradicting_options_of_loaders_are_errors(options):
    with pytest.raises(ValueError, match=r"option|positive|need"):
        DataLoader(range(5), **options)
    with pytest.raises(ValueError, match="IterableDataset"):
        DataLoader(Stream(), shuffle=True)


def test_splits_and_stacks_of_data_sets():
    parts = random_split(range(10), [0.35, 0.65], generator=torch.Generator().manual_seed(0))
    assert [len(p) for p in parts] == [4, 6]
    assert sorted([*parts[0], *parts[1]]) == list(range(10))
    with pytest.raises(ValueError, match="Sum of input lengths"):
        random_split(range(10), [3, 3])
    assert StackDataset(range(2), "ab")[1] == (1, "b")
    assert len(list(RandomSampler(range(3), replacement=True, num_samples=7))) == 7
    assert [b.tolist() for b in DataLoader(Stream(), 2, drop_last=True)] == [[0, 1], [2, 3]]


def test_loaders_yield_tensors_of_their_system():
    class Squares(paddle.io.Dataset):
        def __len__(self):
            return 3

        def __getitem__(self, i):
            return np.float32(i), {"square": i * i}

    x, named = next(iter(paddle.io.DataLoader(Squares(), batch_size=2)))
    assert type(x) is paddle.Tensor
    assert named["square"].tolist() == [0, 1]
    assert type(next(iter(FlowLoader([1.0, 2.0])))) is flow.Tensor
    data = megengine.data.dataset.ArrayDataset(np.arange(4), np.ones(4))
    sampler = megengine.data.RandomSampler(data, batch_size=3, drop_last=True, seed=1)
    (batch,) = list(megengine.data.DataLoader(data, sampler))
    assert type(batch[0]) is np.ndarray
    assert len(batch[0]) == 3
    with pytest.raises(ValueError, match="feed_list"):
        paddle.io.DataLoader(Squares(), return_list=False)


# Files.


def saved(x, load=torch.load, save=torch.save):
    buffer = io.BytesIO()
    save(x, buffer)
    buffer.seek(0)
    return load(buffer)


def test_tensors_that_share_elements_do_so_after_loading():
    x = torch.arange(12.0).reshape(3, 4)
    for order in ([0, 1, 2, 3], [3, 2, 1, 0]):
        tensors = [x, x.t(), x[1], x[::2, 1:3]]
        found = saved([tensors[i] for i in order])
        whole, turned, row, part = (found[order.index(i)] for i in range(4))
        row[0] = 50.0
        part.mul_(2.0)
        assert whole.tolist() == turned.t().tolist()
        assert whole.tolist() == [[0, 2, 4, 3], [50, 5, 6, 7], [8, 18, 20, 11]]
    p = torch.nn.Parameter(torch.ones(2))
    found = saved({"p": p, "again": p, "data": p.detach()})
    assert found["p"] is found["again"]
    assert found["p"].requires_grad
    with torch.no_grad():
        found["p"][0] = 7.0
    assert found["data"].tolist() == [7.0, 1.0]
    assert not found["data"].requires_grad


@pytest.mark.parametrize(
    "x", [{3: (1 + 2j), None: b"x", "t": (1, [2.5, True])}, 2**70, slice(1, None), {1, 2}]
)
def test_plain_objects_are_the_same_after_loading(x):
    assert saved(x) == x


def test_other_objects_and_files_are_errors(tmp_path):
    with pytest.raises(TypeError, match="Linear is not saved"):
        torch.save(torch.nn.Linear(2, 1), tmp_path / "m.pt")
    with pytest.raises(TypeError, match="function is not saved"):
        torch.save(lambda: 0, tmp_path / "f.pt")
    assert not list(tmp_path.iterdir())
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "none.pt")
    with zipfile.ZipFile(tmp_path / "theirs.pt", "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02.")
    with pytest.raises(LoadError, match="pickle"):
        torch.load(tmp_path / "theirs.pt")
    with pytest.raises(LoadError, match="no zip file"):
        torch.load(io.BytesIO(b"text"))
    with pytest.raises(OptionError, match="map_location"):
        saved(torch.ones(1), lambda f: torch.load(f, map_location="cuda:0"))


def test_damaged_files_are_errors():
    buffer = io.BytesIO()
    torch.save([torch.arange(4), torch.arange(4)[1:]], buffer)
    data = bytearray(buffer.getvalue())
    for place in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[place] ^= 0x55
        with contextlib.suppress(LoadError):
            torch.load(io.BytesIO(bytes(damaged)))


def test_safetensors(tmp_path):
    state = {"w": torch.ones(2, 3), "n": torch.arange(2)}
    torch.save(state, tmp_path / "m.safetensors")
    head = (tmp_path / "m.safetensors").read_bytes()
    assert int.from_bytes(head[:8], "little") % 8 == 0
    assert b'"F32"' in head
    found = paddle.load(tmp_path / "m.safetensors")
    assert found["w"].shape == [2, 3]
    assert found["n"].tolist() == [0, 1]
    with pytest.raises(TypeError, match="dict of tensors"):
        torch.save([1], tmp_path / "l.safetensors")


def test_files_of_all_systems(tmp_path):
    paddle.save({"x": paddle.ones([2])}, tmp_path / "folder" / "x.pdparams")
    assert paddle.load(tmp_path / "folder" / "x.pdparams", return_numpy=True)["x"].tolist() == [
        1,
        1,
    ]
    with pytest.raises(ValueError, match="not exists"):
        paddle.load(tmp_path / "none")
    (found,) = saved([megengine.Parameter([1.0])], megengine.load, megengine.save)
    assert type(found) is megengine.Parameter
    assert type(saved(flow.ones(2), flow.load, flow.save)) is flow.Tensor


# Random numbers.


def test_states_of_generators():
    g = torch.Generator()
    assert g.initial_seed() == 67280421310721
    g.manual_seed(3)
    torch.randperm(5, generator=g)
    state = g.get_state()
    first = torch.rand(3, generator=g), torch.poisson(torch.ones(3), generator=g)
    g.set_state(state)
    second = torch.rand(3, generator=g), torch.poisson(torch.ones(3), generator=g)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    with torch.random.fork_rng():
        a = torch.rand(3)
    assert torch.equal(a, torch.rand(3))


def test_numbers_of_compiled_functions_are_new_at_each_call():
    for draw in (
        lambda x: x + torch.randn(2),
        lambda x: torch.bernoulli(torch.full((40,), 0.5)) + x[0],
        lambda x: torch.normal(x, 1.0),
        lambda x: torch.distributions.Gamma(x, 1.0).sample(),
    ):
        f = pg.jit(draw)
        assert not torch.equal(f(torch.ones(2)), f(torch.ones(2)))


def test_uniform_numbers_stay_below_the_upper_bound():
    largest = torch.rand(10**6, generator=torch.Generator().manual_seed(0)).max().item()
    assert largest < 1.0
    assert torch.rand(10**5, dtype=torch.float16).max().item() < 1.0


@pytest.mark.parametrize(
    ("name", "args", "mean", "std"),
    [
        ("uniform_", (2.0, 5.0), 3.5, 0.87),
        ("normal_", (1.0, 2.0), 1.0, 2.0),
        ("exponential_", (2.0,), 0.5, 0.5),
        ("geometric_", (0.5,), 2.0, 1.41),
        ("log_normal_", (0.0, 0.5), 1.13, 0.6),
        ("bernoulli_", (0.3,), 0.3, 0.46),
        ("random_", (0, 10), 4.5, 2.87),
    ],
)
def test_draws_in_place_have_their_moments(name, args, mean, std):
    torch.manual_seed(0)
    x = torch.empty(40000)
    assert getattr(x, name)(*args) is x
    assert abs(x.mean().item() - mean) < 0.05 * (1 + mean)
    assert abs(x.std().item() - std) < 0.05 * (1 + std)


def test_random_functions_of_paddle_and_megengine():
    paddle.seed(3)
    a = paddle.normal(2.0, 0.5, [1000])
    paddle.seed(3)
    assert bool((a == paddle.normal(2.0, 0.5, [1000])).all())
    assert abs(float(a.mean()) - 2.0) < 0.1
    state = paddle.get_rng_state()
    first = paddle.randint(0, 100, [5])
    paddle.set_rng_state(state)
    assert bool((first == paddle.randint(0, 100, [5])).all())
    megengine.random.seed(3)
    x = megengine.random.gamma(megengine.tensor([1.0, 4.0]), size=(2000,))
    assert x.shape == (2000, 2)
    assert abs(float(x.mean(0)[1].item()) - 4.0) < 0.3
    rows = megengine.tensor(np.arange(10))
    megengine.random.shuffle(rows)
    assert sorted(rows.numpy().tolist()) == list(range(10))


# Checkpoints.


def test_checkpoints_have_the_values_and_derivatives_of_their_functions():
    w = torch.nn.Parameter(torch.ones(2))
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for reentrant in (True, False):
        x.grad = w.grad = None
        checkpoint(lambda t: (t * t * w).sum(), x, use_reentrant=reentrant).backward()
        assert x.grad.tolist() == [2.0, 4.0]
        assert w.grad.tolist() == [1.0, 4.0]
    traced = pg.jit(pg.grad(lambda t: checkpoint(torch.sin, t, use_reentrant=False).sum()))
    assert np.allclose(traced(torch.ones(2)).numpy(), np.cos(1.0))
    assert not checkpoint(lambda t: t * w, torch.ones(2), use_reentrant=True).requires_grad
    functions = [torch.nn.Linear(2, 2) for _ in range(3)]
    found = checkpoint_sequential(functions, 2, x, use_reentrant=False)
    assert torch.equal(found, functions[2](functions[1](functions[0](x))))


def test_the_processor_is_the_only_device():
    assert not torch.cuda.is_available()
    assert paddle.get_device() == "cpu"
    with pytest.raises(RuntimeError, match=r"no CUDA|no other device"):
        torch.cuda.get_device_name(0)
    with pytest.raises(OptionError, match="bfloat16"):
        torch.autocast("cpu")
    with torch.autocast("cuda"), torch.autocast("cpu", enabled=False):
        assert (torch.ones(2) * 2).dtype == torch.float32


def test_subclasses_of_data_sets_may_be_subscripted():
    class Numbers(Dataset[int]):
        def __getitem__(self, i):
            return i

    assert Numbers()[3] == 3
