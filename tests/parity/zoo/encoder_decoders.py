"""Models that read one sequence and write another."""

import torch

from .case import BATCH, SEQUENCE, hugging_face, ids, translated


def spoken():
    return {"input_features": torch.randn(BATCH, 8, 32), "labels": ids(sequence=SEQUENCE - 4)}


def heard():
    return {"input_features": torch.randn(BATCH, 32, 8), "labels": ids(sequence=SEQUENCE - 4)}


ENCODER_DECODERS = [
    hugging_face("t5", "T5ForConditionalGeneration", translated, decoder_start_token_id=1),
    hugging_face("t5, gated", "T5ForConditionalGeneration", translated, decoder_start_token_id=1, feed_forward_proj="gated-gelu"),
    hugging_face("mt5", "MT5ForConditionalGeneration", translated),
    hugging_face("umt5", "UMT5ForConditionalGeneration", translated),
    hugging_face("longt5", "LongT5ForConditionalGeneration", translated, decoder_start_token_id=1, local_radius=4),
    hugging_face("bart", "BartForConditionalGeneration", translated),
    hugging_face("mbart", "MBartForConditionalGeneration", translated),
    hugging_face("pegasus", "PegasusForConditionalGeneration", translated),
    hugging_face("marian", "MarianMTModel", translated),
    hugging_face("m2m_100", "M2M100ForConditionalGeneration", translated),
    hugging_face("blenderbot", "BlenderbotForConditionalGeneration", translated),
    hugging_face("prophetnet", "ProphetNetForConditionalGeneration", translated, num_encoder_layers=2,
                 num_decoder_layers=2, num_encoder_attention_heads=4, num_decoder_attention_heads=4, bake=True),
    hugging_face("led", "LEDForConditionalGeneration", translated, attention_window=4),
    hugging_face("whisper", "WhisperForConditionalGeneration", spoken, num_mel_bins=8, max_source_positions=16,
                 max_target_positions=32),
    hugging_face("speech_to_text", "Speech2TextForConditionalGeneration", heard, input_feat_per_channel=8,
                 input_channels=1, conv_channels=16, max_source_positions=32, max_target_positions=32),
]
