"""A DCGAN with spectral normalization, smoothed labels and a gradient penalty."""

import numpy as np
import paddle
from paddle import nn
from paddle.nn.utils import spectral_norm


class Generator(nn.Layer):
    def __init__(self, nz=3, ngf=4):
        super().__init__()
        self.gen = nn.Sequential(
            nn.Conv2DTranspose(nz, ngf, kernel_size=2, stride=1, padding=0, bias_attr=False),
            nn.BatchNorm2D(ngf),
            nn.ReLU(True),
            nn.Conv2DTranspose(ngf, 1, kernel_size=4, stride=2, padding=1, bias_attr=False),
            nn.Tanh(),
        )

    def forward(self, x):
        return self.gen(x)


class Discriminator(nn.Layer):
    def __init__(self, ndf=3):
        super().__init__()
        self.dis = nn.Sequential(
            nn.Conv2D(1, ndf, 3, 2, 1, bias_attr=False),
            nn.LeakyReLU(0.2),
            nn.Conv2D(ndf, 2 * ndf, 3, 1, 1),
            nn.InstanceNorm2D(2 * ndf),
            nn.Softplus(),
        )
        self.fc = nn.Linear(8 * ndf, 1)

    def forward(self, x):
        return self.fc(self.dis(x).reshape([x.shape[0], -1]))


def weights_init(rng):
    def apply(layer):
        name = layer.__class__.__name__
        if (hasattr(layer, "weight") and name.find("Conv") != -1) or name.find("Linear") != -1:
            layer.weight.set_value(rng.normal(0, 0.4, layer.weight.shape).astype("float32"))
        elif name.find("BatchNorm") != -1:
            normal = nn.initializer.Constant(1.0)
            normal(layer.weight)
            layer.bias.set_value(paddle.zeros_like(layer.bias))

    return apply


def r1_penalty(net, real):
    real = real.detach()
    real.stop_gradient = False
    out = net(real)
    grads = paddle.grad(outputs=[out.sum()], inputs=[real], create_graph=True)
    grads = paddle.reshape(grads[0], [real.shape[0], -1])
    return paddle.mean(paddle.linalg.norm(grads, p=2, axis=1) ** 2)


def main():
    rng = np.random.default_rng(11)
    netG, netD = Generator(), Discriminator()
    netG.apply(weights_init(rng))
    netD.apply(weights_init(rng))
    loss = nn.BCEWithLogitsLoss()
    optD = paddle.optimizer.Adam(
        parameters=netD.parameters(), learning_rate=0.002, beta1=0.5, beta2=0.999
    )
    optG = paddle.optimizer.RMSProp(parameters=netG.parameters(), learning_rate=0.002, rho=0.9)
    rows = []
    for _step in range(4):
        real = paddle.to_tensor(rng.uniform(-1, 1, (6, 1, 4, 4)).astype("float32"))
        noise = paddle.to_tensor(rng.normal(size=(6, 3, 1, 1)), dtype="float32")
        optD.clear_grad()
        errD_real = loss(netD(real), paddle.full((6, 1), 0.9, dtype="float32"))
        errD_real.backward()
        fake = netG(noise)
        errD_fake = loss(netD(fake.detach()), paddle.full((6, 1), 0.0, dtype="float32"))
        errD_fake.backward()
        penalty = 0.5 * r1_penalty(netD, real)
        penalty.backward()
        optD.step()
        optG.clear_grad()
        for p in netD.parameters():
            p.stop_gradient = True
        errG = loss(netD(fake), paddle.full((6, 1), 1.0, dtype="float32"))
        errG.backward()
        for p in netD.parameters():
            p.stop_gradient = False
        optG.step()
        rows.append([errD_real.item(), errD_fake.item(), penalty.item(), errG.item()])
    sn = spectral_norm(nn.Linear(3, 4), n_power_iterations=30)
    sn.weight_orig.set_value(rng.normal(size=(3, 4)).astype("float32"))
    sn(paddle.ones([1, 3]))
    sigma = np.linalg.svd(sn.weight.numpy(), compute_uv=False)[0]
    netG.eval()
    print(netG)
    return {
        "rows": rows,
        "image": netG(paddle.ones([1, 3, 1, 1])),
        "sigma": bool(abs(sigma - 1) < 1e-3),
        "grad none": [p.grad is None for p in netD.parameters()],
        "names": [n for n, _ in netD.named_parameters()],
        "sn": sorted(n for n, _ in sn.named_parameters()),
    }
