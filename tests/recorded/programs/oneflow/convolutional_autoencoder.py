"""A convolutional autoencoder that removes noise from small images.

The twin is this text with torch in place of oneflow.
"""

import numpy as np
import oneflow as flow
import oneflow.nn as nn
import oneflow.nn.functional as F

SIZE = 8


class Encoder(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(1, channels, kernel_size=3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, kernel_size=3, stride=2, padding=1)

    def forward(self, x):
        return F.relu(self.conv2(F.relu(self.conv1(x))))


class Decoder(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.up1 = nn.ConvTranspose2d(channels, channels, kernel_size=2, stride=2)
        self.up2 = nn.ConvTranspose2d(channels, 1, kernel_size=2, stride=2)

    def forward(self, x):
        return flow.sigmoid(self.up2(F.relu(self.up1(x))))


class Autoencoder(nn.Module):
    def __init__(self, channels=3):
        super().__init__()
        self.encoder = Encoder(channels)
        self.decoder = Decoder(channels)

    def forward(self, x):
        return self.decoder(self.encoder(x))


def make_images(rng, count):
    images = np.zeros((count, 1, SIZE, SIZE))
    for image in images[:, 0]:
        row, column = rng.integers(0, SIZE - 3, 2)
        image[row : row + 3, column : column + 3] = 1.0
    return images


def signal_to_noise(clean, x):
    error = (clean - x).pow(2).mean(dim=(1, 2, 3))
    return -10.0 * flow.log10(error)


def main():
    rng = np.random.default_rng(1)
    clean = flow.tensor(make_images(rng, 8))
    noisy = clean + 0.2 * flow.tensor(rng.normal(size=tuple(clean.shape)))
    model = Autoencoder().to(flow.float64)
    for name, parameter in model.named_parameters():
        spread = 0.4 if name.endswith("weight") else 0.05
        parameter.data = flow.tensor(rng.normal(0.0, spread, tuple(parameter.shape)))
    optimizer = flow.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(5):
        loss = F.mse_loss(model(noisy), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with flow.no_grad():
        restored = model(noisy)
        ratio = signal_to_noise(clean, restored)
        code = model.encoder(noisy[:1])
    return {
        "losses": np.array(losses),
        "ratio": ratio.numpy(),
        "code": code.flatten().numpy(),
        "image": restored[0, 0, :2].numpy(),
    }
