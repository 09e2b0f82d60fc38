"""An image with the content of one image and the Gram matrices of another.

The twin is this text with torch in place of oneflow.
"""

import numpy as np
import oneflow as flow
import oneflow.nn.functional as F
from oneflow import nn


class Features(nn.Module):
    """Fixed convolutions, whose results are those of each layer."""

    def __init__(self, rng):
        super().__init__()
        self.convolutions = nn.ModuleList(
            [nn.Conv2d(1, 3, 3, padding=1), nn.Conv2d(3, 4, 3, padding=1)]
        )
        for convolution in self.convolutions:
            for p in convolution.parameters():
                p.data = flow.tensor(rng.normal(0.0, 0.4, tuple(p.shape)))
                p.requires_grad = False

    def forward(self, x):
        found = []
        for convolution in self.convolutions:
            x = F.relu(convolution(x))
            found.append(x)
            x = F.avg_pool2d(x, 2)
        return found


def gram(features):
    batch, channels, height, width = features.shape
    rows = features.view(batch * channels, height * width)
    return flow.mm(rows, rows.t()) / (channels * height * width)


def total_variation(image):
    rows = (image[:, :, 1:, :] - image[:, :, :-1, :]).abs().sum()
    columns = (image[:, :, :, 1:] - image[:, :, :, :-1]).abs().sum()
    return rows + columns


def transfer(network, content, style, steps):
    with flow.no_grad():
        wanted = network(content)[1]
        grams = [gram(f) for f in network(style)]
    image = content.clone().requires_grad_(True)
    optimizer = flow.optim.Adam([image], lr=0.05)
    history = []
    for _ in range(steps):
        optimizer.zero_grad()
        features = network(image)
        content_loss = F.mse_loss(features[1], wanted)
        style_loss = sum(F.mse_loss(gram(f), g) for f, g in zip(features, grams, strict=True))
        loss = content_loss + 100.0 * style_loss + 1e-3 * total_variation(image)
        loss.backward()
        optimizer.step()
        with flow.no_grad():
            image.clamp_(0.0, 1.0)
        history.append([content_loss.item(), style_loss.item(), loss.item()])
    return image.detach(), history


def main():
    rng = np.random.default_rng(6)
    network = Features(rng)
    content = flow.tensor(rng.uniform(0.2, 0.8, (1, 1, 6, 6)))
    style = flow.tensor(np.indices((6, 6)).sum(axis=0)[None, None] % 2 * 0.9)
    image, history = transfer(network, content, style, steps=5)
    return {
        "history": np.array(history),
        "image": image[0, 0].numpy(),
        "gram": gram(network(image)[0]).numpy(),
        "trained": any(p.requires_grad for p in network.parameters()),
    }
