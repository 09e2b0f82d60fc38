"""Empirical neural tangent kernel by jacrev and vmap, and by vjp and jvp."""

import numpy as np
import torch
import torch.nn as nn
from torch.func import functional_call, jacrev, jvp, vjp, vmap


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 3, 3), nn.Conv2d(3, 2, 2)
        self.fc = nn.Linear(2 * 3 * 3, 2)

    def forward(self, x):
        x = self.conv1(x).relu()
        x = self.conv2(x).relu()
        return self.fc(x.flatten(1))


def empirical_ntk_jacobian_contraction(fnet, params, x1, x2, compute="full"):
    jac1 = vmap(jacrev(fnet), (None, 0))(params, x1)
    jac1 = [j.flatten(2) for j in jac1.values()]
    jac2 = vmap(jacrev(fnet), (None, 0))(params, x2)
    jac2 = [j.flatten(2) for j in jac2.values()]
    expr = {"full": "Naf,Mbf->NMab", "trace": "Naf,Maf->NM", "diagonal": "Naf,Maf->NMa"}[compute]
    return torch.stack([torch.einsum(expr, a, b) for a, b in zip(jac1, jac2, strict=False)]).sum(0)


def empirical_ntk_ntk_vps(func, params, x1, x2):
    def get_ntk(x1, x2):
        def func_x1(params):
            return func(params, x1)

        def func_x2(params):
            return func(params, x2)

        output, vjp_fn = vjp(func_x1, params)

        def get_ntk_slice(vec):
            vjps = vjp_fn(vec)
            _, jvps = jvp(func_x2, (params,), vjps)
            return jvps

        basis = torch.eye(output.numel(), dtype=output.dtype).view(output.numel(), -1)
        return vmap(get_ntk_slice)(basis)

    return vmap(vmap(get_ntk, (None, 0)), (0, None))(x1, x2)


def main():
    rng = np.random.default_rng(17)
    net = CNN()
    for p in net.parameters():
        p.data = torch.from_numpy(rng.normal(size=tuple(p.shape)).astype(np.float32) * 0.4)
    x_train = torch.from_numpy(rng.normal(size=(5, 1, 6, 6)).astype(np.float32))
    x_test = torch.from_numpy(rng.normal(size=(3, 1, 6, 6)).astype(np.float32))
    params = {k: v.detach() for k, v in net.named_parameters()}

    def fnet_single(params, x):
        return functional_call(net, params, (x.unsqueeze(0),)).squeeze(0)

    full = empirical_ntk_jacobian_contraction(fnet_single, params, x_train, x_test)
    trace = empirical_ntk_jacobian_contraction(fnet_single, params, x_train, x_train, "trace")
    diagonal = empirical_ntk_jacobian_contraction(fnet_single, params, x_train, x_test, "diagonal")
    products = empirical_ntk_ntk_vps(fnet_single, params, x_train, x_test)
    y = torch.from_numpy(rng.normal(size=(5, 1)).astype(np.float32))
    k_test = empirical_ntk_jacobian_contraction(fnet_single, params, x_test, x_train, "trace")
    alpha = torch.linalg.solve(trace + 0.1 * torch.eye(5), y)
    delta = {
        k: torch.from_numpy(rng.normal(size=tuple(v.shape)).astype(np.float32) * 1e-2)
        for k, v in params.items()
    }

    def batched(p):
        return functional_call(net, p, (x_test,))

    value, tangent = jvp(batched, (params,), (delta,))
    linear = value + tangent
    exact = batched({k: params[k] + delta[k] for k in params})
    eig = torch.linalg.eigvalsh(trace)
    return (
        full,
        trace,
        diagonal,
        (full - products).abs().max() < 1e-4,
        k_test @ alpha,
        linear,
        (linear - exact).abs().max() < 0.05,
        eig,
    )
