"""Models of transformers with random weights and small sizes, each with example inputs."""
import torch
import transformers
from torch import nn

SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4}
DECODER = {**SIZES, "vocab_size": 96, "num_key_value_heads": 2, "max_position_embeddings": 64, "use_cache": False}


def _seeded(make):
    torch.manual_seed(0)
    return make()


def _integers(below, *shape):
    return torch.randint(below, shape, generator=torch.Generator().manual_seed(3))


def _numbers(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(3))


def _text(model):
    return model, {"input_ids": _integers(96, 2, 12), "labels": _integers(96, 2, 12)}


def llama():
    config = transformers.LlamaConfig(**DECODER, num_hidden_layers=3)
    return _text(_seeded(lambda: transformers.LlamaForCausalLM(config)))


def gemma2():
    config = transformers.Gemma2Config(**DECODER, num_hidden_layers=4, head_dim=8, sliding_window=8)
    return _text(_seeded(lambda: transformers.Gemma2ForCausalLM(config)))


def mixtral():
    config = transformers.MixtralConfig(**DECODER, num_hidden_layers=3, num_local_experts=4, num_experts_per_tok=2,
                                        experts_implementation="batched_mm")
    return _text(_seeded(lambda: transformers.MixtralForCausalLM(config)))


def vit():
    config = transformers.ViTConfig(**SIZES, num_hidden_layers=3, image_size=32, patch_size=8, num_labels=7)
    model = _seeded(lambda: transformers.ViTForImageClassification(config))
    return model, {"pixel_values": _numbers(2, 3, 32, 32), "labels": _integers(7, 2)}


def whisper():
    config = transformers.WhisperConfig(
        vocab_size=80, num_mel_bins=8, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_source_positions=24,
        max_target_positions=16, use_cache=False, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=3, suppress_tokens=None, begin_suppress_tokens=None, apply_spec_augment=False, dropout=0.0)
    model = _seeded(lambda: transformers.WhisperForConditionalGeneration(config))
    return model, {"input_features": _numbers(2, 8, 48), "decoder_input_ids": _integers(80, 2, 10),
                   "labels": _integers(80, 2, 10)}


class ClipLoss(nn.Module):
    def __init__(self, clip):
        super().__init__()
        self.clip = clip

    def forward(self, input_ids, pixel_values):
        return self.clip(input_ids=input_ids, pixel_values=pixel_values, return_loss=True).loss


def clip():
    sizes = {**SIZES, "num_hidden_layers": 2}
    config = transformers.CLIPConfig(
        text_config={**sizes, "vocab_size": 90, "max_position_embeddings": 16, "bos_token_id": 0, "eos_token_id": 89},
        vision_config={**sizes, "image_size": 32, "patch_size": 8}, projection_dim=24)
    return _seeded(lambda: ClipLoss(transformers.CLIPModel(config))), {
        "input_ids": _integers(89, 3, 10), "pixel_values": _numbers(3, 3, 32, 32)}


ALL = [llama, gemma2, mixtral, vit, whisper, clip]
