"""A Transformer with masks, warmup, accumulated gradients and averaged weights."""

import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F


class PositionalEncoding(nn.Layer):
    def __init__(self, dim, max_len=16):
        super().__init__()
        position = paddle.arange(max_len, dtype="float32").unsqueeze(1)
        div = paddle.exp(paddle.arange(0, dim, 2, dtype="float32") * (-np.log(10000.0) / dim))
        pe = paddle.zeros([max_len, dim])
        pe[:, 0::2] = paddle.sin(position * div)
        pe[:, 1::2] = paddle.cos(position * div)
        self.register_buffer("pe", pe.unsqueeze(0))

    def forward(self, x):
        return x + self.pe[:, : x.shape[1]]


class Seq2Seq(nn.Layer):
    def __init__(self, vocab, dim):
        super().__init__()
        self.src = nn.Embedding(vocab, dim, weight_attr=nn.initializer.Normal(0, 0.1))
        self.pos = PositionalEncoding(dim)
        self.transformer = nn.Transformer(
            dim,
            nhead=2,
            num_encoder_layers=1,
            num_decoder_layers=1,
            dim_feedforward=8,
            dropout=0.0,
            normalize_before=True,
        )
        self.dim = dim

    def forward(self, src, tgt):
        mask = self.transformer.generate_square_subsequent_mask(tgt.shape[1])
        pad = (src == 0).astype("float32").unsqueeze([1, 2]) * -1e9
        out = self.transformer(
            self.pos(self.src(src)) * self.dim**0.5,
            self.pos(self.src(tgt)),
            src_mask=pad,
            tgt_mask=mask,
            memory_mask=pad,
        )
        return paddle.matmul(out, self.src.weight, transpose_y=True)


class EMA:
    def __init__(self, layer, decay):
        self.layer, self.decay = layer, decay
        self.shadow = {n: p.clone().detach() for n, p in layer.named_parameters()}

    def update(self):
        for n, p in self.layer.named_parameters():
            self.shadow[n] = self.decay * self.shadow[n] + (1.0 - self.decay) * p.detach()

    def apply(self):
        for n, p in self.layer.named_parameters():
            p.set_value(self.shadow[n])


def main():
    rng = np.random.default_rng(2)
    model = Seq2Seq(7, 4)
    for _n, p in model.named_parameters():
        if p.ndim > 1:
            p.set_value(rng.normal(0, 0.3, p.shape).astype("float32"))
    src = paddle.to_tensor(rng.integers(1, 7, (4, 5)))
    src[0, 3:] = 0
    tgt = paddle.to_tensor(rng.integers(1, 7, (4, 4)))
    label = paddle.roll(tgt, -1, axis=1)
    label[:, -1] = 0
    scheduler = paddle.optimizer.lr.LambdaDecay(0.1, lambda step: min((step + 1) / 3, 1.0))
    no_decay = [
        p.name for n, p in model.named_parameters() if not any(nd in n for nd in ["bias", "norm"])
    ]
    opt = paddle.optimizer.AdamW(
        scheduler,
        parameters=model.parameters(),
        weight_decay=0.1,
        beta2=0.98,
        apply_decay_param_fun=lambda x: x in no_decay,
        lr_ratio=None,
        grad_clip=nn.ClipGradByGlobalNorm(1.0),
    )
    scaler = paddle.amp.GradScaler(enable=False, init_loss_scaling=1024)
    ema = EMA(model, 0.5)
    losses = []
    for _step in range(4):
        for half in (slice(0, 2), slice(2, 4)):
            with paddle.amp.auto_cast(enable=False):
                logits = model(src[half], tgt[half])
                loss = F.cross_entropy(logits, label[half], ignore_index=0) / 2
            scaled = scaler.scale(loss)
            scaled.backward()
            losses.append(loss.item())
        scaler.step(opt)
        scaler.update()
        opt.clear_grad(set_to_zero=False)
        scheduler.step()
        ema.update()
    ema.apply()
    model.eval()
    with paddle.no_grad():
        out = paddle.full([4, 1], 1, dtype="int64")
        for _ in range(3):
            nxt = paddle.argmax(model(src, out)[:, -1], axis=-1, keepdim=True)
            out = paddle.concat([out, nxt], axis=1)
        value, index = paddle.topk(F.log_softmax(model(src, out)[:, -1]), k=2)
    print(model.transformer.encoder)
    layer = model.transformer.decoder.layers[0]
    return {
        "losses": losses,
        "out": out,
        "value": value,
        "index": index,
        "lr": opt.get_lr(),
        "q": layer.self_attn.q_proj.weight,
        "n": len(model.state_dict()),
        "names": [n for n, _ in model.named_sublayers()][:8],
    }
