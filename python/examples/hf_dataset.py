#!/usr/bin/env python3
"""A small Trainer over what Hugging Face `datasets` gives: any iterable of rows that are dicts of lists of numbers.

`datasets.load_dataset(..., streaming=True).map(tokenize)` is one, a list of dicts another: neither package is needed here.
"""
import itertools

import torch

import tandem


class Trainer:
    """As transformers.Trainer is called, as far as it goes: rows to batches of one size, training to Tandem."""

    def __init__(self, model, rows, *, batch_size, length, columns=("input_ids",), pad=0, on_log=None, **sections):
        self.model, self.rows, self.batch_size, self.length = model, rows, batch_size, length
        self.columns, self.pad, self.on_log, self.sections = columns, pad, on_log, sections

    def train(self, steps):
        """Goes through the rows as often as the steps need. Returns tandem.Result."""
        return tandem.train(self.model, itertools.islice(self._batches(), steps), self.on_log, steps=steps, **self.sections)

    def _batches(self):
        """All of one shape, as the model is imported for one: what is left of the rows begins the next round."""
        rows = itertools.chain.from_iterable(self.rows for _ in itertools.count())
        while chunk := list(itertools.islice(rows, self.batch_size)):
            batch = {column: torch.tensor([self._fitted(row[column], self.pad) for row in chunk]) for column in self.columns}
            batch["labels"] = torch.tensor([self._fitted(row.get("labels", row["input_ids"]), -100) for row in chunk])
            yield batch

    def _fitted(self, numbers, fill):
        return list(numbers)[:self.length] + [fill] * (self.length - len(numbers))


class NextByte(torch.nn.Module):
    """Called as models of transformers are: by names, with labels that it shifts by itself."""

    def __init__(self, width=32):
        super().__init__()
        self.bytes = torch.nn.Embedding(256, width)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(2))
        self.head = torch.nn.Linear(width, 256)

    def forward(self, input_ids, labels):
        x = self.bytes(input_ids)
        for layer in self.layers:
            x = x + torch.nn.functional.gelu(layer(x))
        logits = self.head(x)
        loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return {"loss": loss, "logits": logits}


def main(steps=30):
    text = "a loader of one's own is any iterable of rows, and a row is a dict of lists. " * 8
    rows = [{"input_ids": list(text[i:i + 30].encode())} for i in range(0, len(text), 30)]  # tokens, as a tokenizer gives
    trainer = Trainer(NextByte(), rows, batch_size=4, length=32, machine="cpu_2_cores", optimizer={"learning_rate": 1e-2},
                      policy="resident", on_log=lambda m: print(f"step {m.step}: loss {m.loss:.3f}") if m.step % 10 == 0 else None)
    return trainer.train(steps).losses


if __name__ == "__main__":
    main()
