"""Tiny models of transformers with random weights, and their own loss on a batch of Tandem's."""
import torch
import transformers as hf

COMMON = dict(bos_token_id=1, eos_token_id=2)
WORDS, PLACES = 130, 24


def _llama_like(config, model, **more):
    return model(config(hidden_size=32, intermediate_size=56, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
                        vocab_size=WORDS, max_position_embeddings=PLACES, **COMMON, **more))


def gpt2(tied=True):
    return hf.GPT2LMHeadModel(hf.GPT2Config(n_layer=3, n_embd=36, n_head=3, vocab_size=WORDS, n_positions=PLACES, resid_pdrop=0.0,
                                            embd_pdrop=0.0, attn_pdrop=0.0, tie_word_embeddings=tied, **COMMON))


def opt():
    return hf.OPTForCausalLM(hf.OPTConfig(num_hidden_layers=2, hidden_size=32, ffn_dim=72, num_attention_heads=4, vocab_size=WORDS,
                                          max_position_embeddings=PLACES, word_embed_proj_dim=32, dropout=0.0, pad_token_id=1))


def bloom():
    return hf.BloomForCausalLM(hf.BloomConfig(n_layer=2, hidden_size=32, n_head=4, vocab_size=WORDS, hidden_dropout=0.0,
                                              attention_dropout=0.0, pad_token_id=3, **COMMON))


def gptj():
    return hf.GPTJForCausalLM(hf.GPTJConfig(n_layer=2, n_embd=32, n_head=4, vocab_size=WORDS, n_positions=PLACES, rotary_dim=4,
                                            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, **COMMON))


def falcon():
    return hf.FalconForCausalLM(hf.FalconConfig(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=WORDS,
                                                max_position_embeddings=PLACES, **COMMON))


def falcon_two_norms():
    return hf.FalconForCausalLM(hf.FalconConfig(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, num_kv_heads=2,
                                                new_decoder_architecture=True, vocab_size=WORDS, max_position_embeddings=PLACES,
                                                **COMMON))


def llama(tied=False):
    return _llama_like(hf.LlamaConfig, hf.LlamaForCausalLM, tie_word_embeddings=tied)


def mistral():
    return _llama_like(hf.MistralConfig, hf.MistralForCausalLM, sliding_window=7, head_dim=8)


def qwen2():
    return _llama_like(hf.Qwen2Config, hf.Qwen2ForCausalLM)


def gemma2():
    return _llama_like(hf.Gemma2Config, hf.Gemma2ForCausalLM, head_dim=8, sliding_window=6, query_pre_attn_scalar=8,
                       attn_implementation="eager")


def mixtral():
    return _llama_like(hf.MixtralConfig, hf.MixtralForCausalLM, num_local_experts=5, router_aux_loss_coef=0.0)


def _bert_config(**more):
    return hf.BertConfig(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, intermediate_size=72, vocab_size=WORDS,
                         max_position_embeddings=PLACES, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **more)


def bert():
    return hf.BertForMaskedLM(_bert_config())


def bert_pretraining():
    return hf.BertForPreTraining(_bert_config())


def vit():
    return hf.ViTForImageClassification(hf.ViTConfig(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, intermediate_size=72,
                                                     image_size=12, patch_size=4, num_labels=7))


def _t5(tied=True, **more):
    config = hf.T5Config(num_layers=2, num_decoder_layers=3, d_model=32, d_kv=8, d_ff=72, num_heads=4, vocab_size=WORDS,
                         dropout_rate=0.0, decoder_start_token_id=0, tie_word_embeddings=tied, **more)
    config.tie_word_embeddings = tied  # which the constructor overrides
    model = hf.T5ForConditionalGeneration(config)
    model.encoder.embed_tokens = model.decoder.embed_tokens = model.shared  # as in the files of version 1.1
    return model


def t5():
    return _t5()


def t5_gated():
    return _t5(tied=False, feed_forward_proj="gated-gelu")


def whisper():
    return hf.WhisperForConditionalGeneration(hf.WhisperConfig(
        encoder_layers=2, decoder_layers=2, d_model=32, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=128,
        decoder_ffn_dim=128, vocab_size=WORDS, num_mel_bins=8, max_target_positions=PLACES, pad_token_id=0, dropout=0.0,
        decoder_start_token_id=1, suppress_tokens=None, begin_suppress_tokens=None, **COMMON))


def clip():
    return hf.CLIPModel(hf.CLIPConfig(
        text_config=dict(num_hidden_layers=2, hidden_size=32, intermediate_size=128, num_attention_heads=4, vocab_size=WORDS,
                         max_position_embeddings=PLACES),
        vision_config=dict(num_hidden_layers=2, hidden_size=40, intermediate_size=160, num_attention_heads=5, image_size=12,
                           patch_size=4), projection_dim=20))


def randomise(model):
    """Biases and norms, too: what begins as zeros or ones would hide a mistake."""
    torch.manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.copy_(torch.randn_like(parameter) * 0.08)
            elif parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


def loss_on(model, batch):
    """`batch`: tensors by the names that Tandem's family has for them."""
    entropy = torch.nn.functional.cross_entropy
    with torch.no_grad():
        if isinstance(model, hf.CLIPModel):
            text = model.text_model(input_ids=batch["tokens"]).last_hidden_state[:, -1]
            texts, images = model.text_projection(text), model.get_image_features(pixel_values=batch["images"])
            images = getattr(images, "pooler_output", images)
            texts, images = (x / x.norm(dim=-1, keepdim=True) for x in (texts, images))
            scores = model.logit_scale.exp() * texts @ images.T
            labels = torch.arange(len(scores))
            return ((entropy(scores, labels) + entropy(scores.T, labels)) / 2).item()
        if isinstance(model, hf.ViTForImageClassification):
            logits, targets = model(pixel_values=batch["images"]).logits, batch["labels"]
        elif isinstance(model, hf.WhisperForConditionalGeneration):
            logits, targets = model(input_features=batch["mels"], decoder_input_ids=batch["tokens"]).logits, batch["targets"]
        elif isinstance(model, hf.T5ForConditionalGeneration):
            logits, targets = model(input_ids=batch["sources"], decoder_input_ids=batch["inputs"]).logits, batch["targets"]
        elif isinstance(model, hf.BertForPreTraining):
            logits, targets = model(input_ids=batch["inputs"]).prediction_logits, batch["targets"]
        else:
            logits, targets = model(input_ids=batch["inputs"]).logits, batch["targets"]
        return entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)).item()
