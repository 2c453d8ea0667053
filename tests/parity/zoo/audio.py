"""Sound."""

import torch

from .case import BATCH, hugging_face

CONVOLUTIONS = {"conv_dim": [16, 16], "conv_stride": [4, 4], "conv_kernel": [8, 4], "num_feat_extract_layers": 2,
                "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2}


def classified():
    return {"input_values": torch.randn(BATCH, 400), "labels": torch.randint(0, 3, (BATCH,))}


def spectrogram():
    return {"input_values": torch.randn(BATCH, 32, 16), "labels": torch.randint(0, 3, (BATCH,))}


AUDIO = [
    hugging_face("wav2vec2", "Wav2Vec2ForSequenceClassification", classified, **CONVOLUTIONS),
    hugging_face("hubert", "HubertForSequenceClassification", classified, **CONVOLUTIONS),
    hugging_face("wavlm", "WavLMForSequenceClassification", classified, **CONVOLUTIONS),
    hugging_face("sew", "SEWForSequenceClassification", classified, squeeze_factor=2, **CONVOLUTIONS),
    hugging_face("unispeech", "UniSpeechForSequenceClassification", classified, **CONVOLUTIONS),
    hugging_face("ast", "ASTForAudioClassification", spectrogram, max_length=32, num_mel_bins=16, frequency_stride=4,
                 time_stride=4),
    hugging_face("wav2vec2-conformer", "Wav2Vec2ConformerForSequenceClassification", classified, **CONVOLUTIONS),
]
