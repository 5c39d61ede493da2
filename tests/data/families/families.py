"""The families, as data: what each is in the words of its configuration.

`model`: class of transformers. `dtype`: of the stored weights. `qk`: how large queries and keys are made (families that
do not scale their scores want less). `old`: config.old.json too, the same in older words. Rest: the config."""

T = 66  # tokens: more than every window, and than the first context of longrope and yarn

DECODER = dict(vocab_size=48, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
               num_key_value_heads=2, head_dim=8, max_position_embeddings=128, bos_token_id=1, eos_token_id=2,
               pad_token_id=None, tie_word_embeddings=False)
GEMMA = DECODER | dict(hidden_size=20, intermediate_size=14, sliding_window=9, query_pre_attn_scalar=12, pad_token_id=0,
                       layer_types=["sliding_attention", "full_attention"], tie_word_embeddings=True)
ENCODER = dict(vocab_size=48, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
               max_position_embeddings=80, pad_token_id=0)
GPT_NEOX = dict(vocab_size=48, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
                max_position_embeddings=128, bos_token_id=1, eos_token_id=2, tie_word_embeddings=False)
GPT2 = dict(vocab_size=48, n_embd=16, n_layer=2, n_head=2, n_inner=24, n_positions=80, bos_token_id=1, eos_token_id=2)
OPT = dict(vocab_size=48, hidden_size=16, ffn_dim=24, num_hidden_layers=2, num_attention_heads=2, pad_token_id=1,
           bos_token_id=2, eos_token_id=2, max_position_embeddings=80)
T5 = dict(vocab_size=48, d_model=12, d_kv=4, d_ff=16, num_layers=2, num_heads=2, pad_token_id=0, eos_token_id=1,
          decoder_start_token_id=0)
# With few channels, a small base: else the ramp from one frequency to the next lies between two of them.
YARN = dict(rope_type="yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=32)

FAMILIES = {
    "llama": dict(model="LlamaForCausalLM", dtype="bfloat16", **DECODER, rms_norm_eps=1e-5),
    "llama_bias": dict(model="LlamaForCausalLM", attention_bias=True, mlp_bias=True, **DECODER),
    "llama_llama3": dict(model="LlamaForCausalLM", dtype="float16", old=True, **DECODER | dict(
        tie_word_embeddings=True, rope_parameters=dict(
            rope_type="llama3", rope_theta=500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
            original_max_position_embeddings=64))),
    "llama_linear": dict(model="LlamaForCausalLM", dtype="float64", **DECODER, rope_parameters=dict(
        rope_type="linear", rope_theta=10000.0, factor=2.5)),
    "llama_yarn": dict(model="LlamaForCausalLM", old=True, **DECODER, rope_parameters=YARN),
    "mistral": dict(model="MistralForCausalLM", dtype="bfloat16", sliding_window=7, **DECODER),
    "qwen2": dict(model="Qwen2ForCausalLM", use_sliding_window=True, sliding_window=11, max_window_layers=1,
                  **{k: v for k, v in DECODER.items() if k != "head_dim"}),
    "qwen3": dict(model="Qwen3ForCausalLM", dtype="bfloat16", **DECODER | dict(tie_word_embeddings=True)),
    "qwen3_moe": dict(model="Qwen3MoeForCausalLM", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=12,
                      norm_topk_prob=True, decoder_sparse_step=2, **DECODER),
    "qwen3_moe_raw": dict(model="Qwen3MoeForCausalLM", dtype="bfloat16", num_experts=4, num_experts_per_tok=2,
                          moe_intermediate_size=12, norm_topk_prob=False, mlp_only_layers=[1], **DECODER),
    "gemma2": dict(model="Gemma2ForCausalLM", attn_logit_softcapping=3.0, final_logit_softcapping=4.0, **GEMMA),
    "gemma3": dict(model="Gemma3ForCausalLM", dtype="bfloat16", old=True, **GEMMA, rope_parameters=dict(
        sliding_attention=dict(rope_type="default", rope_theta=10000.0),
        full_attention=dict(rope_type="linear", rope_theta=1000000.0, factor=8.0))),
    "gemma3_f32": dict(model="Gemma3ForCausalLM", **GEMMA),
    "phi3": dict(model="Phi3ForCausalLM", old=True, sliding_window=13, original_max_position_embeddings=32,
                 **{k: v for k, v in DECODER.items() if k != "head_dim"} | dict(
                     num_attention_heads=2, num_key_value_heads=1, pad_token_id=0, rope_parameters=dict(
                         rope_type="longrope", rope_theta=10000.0, partial_rotary_factor=0.5, short_factor=[1.0, 1.25],
                         long_factor=[1.5, 4.0], original_max_position_embeddings=32))),
    "gpt2": dict(model="GPT2LMHeadModel", **GPT2),
    "gpt2_inverse_layer": dict(model="GPT2LMHeadModel", scale_attn_by_inverse_layer_idx=True, **GPT2),
    "gpt_neox": dict(model="GPTNeoXForCausalLM", dtype="float16", use_parallel_residual=True, rope_parameters=dict(
        rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5), old=True, **GPT_NEOX),
    "gpt_neox_serial": dict(model="GPTNeoXForCausalLM", use_parallel_residual=False, rope_parameters=dict(
        rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.75), **GPT_NEOX),
    "gpt_neo": dict(model="GPTNeoForCausalLM", qk=0.9, vocab_size=48, hidden_size=16, num_layers=2, num_heads=2,
                    intermediate_size=24, window_size=6, attention_types=[[["global", "local"], 1]],
                    max_position_embeddings=80, bos_token_id=1, eos_token_id=2),
    "opt": dict(model="OPTForCausalLM", dtype="float16", **OPT, word_embed_proj_dim=16),
    "opt_post_norm": dict(model="OPTForCausalLM", **OPT, word_embed_proj_dim=12, do_layer_norm_before=False),
    "gpt_oss": dict(model="GptOssForCausalLM", dtype="bfloat16", num_local_experts=4, num_experts_per_tok=2,
                    sliding_window=8, layer_types=["sliding_attention", "full_attention"], **DECODER | dict(
                        intermediate_size=12, rope_parameters=YARN | dict(
                            truncate=False, beta_fast=4.0, beta_slow=1.0))),
    "minimind_1": dict(model="LlamaForCausalLM", minimind=1, rms_norm_eps=1e-5, **DECODER | dict(
        hidden_size=16, num_attention_heads=4, head_dim=4, max_position_embeddings=72, tie_word_embeddings=True)),
    "minimind_2": dict(model="LlamaForCausalLM", minimind=2, rms_norm_eps=1e-5, **DECODER | dict(
        num_attention_heads=4, head_dim=4, tie_word_embeddings=True, rope_parameters=dict(
            rope_type="default", rope_theta=1e6))),
    "minimind_3": dict(model="Qwen3ForCausalLM", minimind=3, dtype="bfloat16", rms_norm_eps=1e-6, **DECODER | dict(
        tie_word_embeddings=True, rope_parameters=dict(rope_type="default", rope_theta=1e6))),
    "bert": dict(model="BertForMaskedLM", **ENCODER),
    "bert_bare": dict(model="BertModel", dtype="float16", **ENCODER),
    "roberta": dict(model="RobertaForMaskedLM", **ENCODER | dict(
        pad_token_id=1, bos_token_id=0, eos_token_id=2, type_vocab_size=1, layer_norm_eps=1e-5)),
    "distilbert": dict(model="DistilBertForMaskedLM", vocab_size=48, dim=16, n_layers=2, n_heads=2, hidden_dim=24,
                       max_position_embeddings=80, pad_token_id=0),
    "modernbert": dict(model="ModernBertForMaskedLM", local_attention=12, layer_types=[
        "full_attention", "sliding_attention"], **ENCODER, cls_token_id=1, sep_token_id=2, bos_token_id=1,
        eos_token_id=2),
    "t5": dict(model="T5ForConditionalGeneration", qk=0.9, feed_forward_proj="relu", tie_word_embeddings=True, **T5),
    "t5_gated": dict(model="T5ForConditionalGeneration", qk=0.9, feed_forward_proj="gated-gelu",
                     tie_word_embeddings=False, **T5),
    "marian": dict(model="MarianMTModel", vocab_size=48, d_model=8, encoder_layers=2, decoder_layers=2,
                   encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16,
                   max_position_embeddings=80, activation_function="swish", scale_embedding=True, pad_token_id=47,
                   eos_token_id=0, forced_eos_token_id=0, decoder_start_token_id=47),
}
