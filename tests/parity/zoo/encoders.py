"""Models that read a text as a whole."""

import torch

from .case import BATCH, SEQUENCE, causal, hugging_face, ids, masked


def classified():
    return {"input_ids": ids(), "labels": torch.randint(0, 3, (BATCH,))}


def spans():
    return {"input_ids": ids(), "start_positions": torch.tensor([1, 3]), "end_positions": torch.tensor([4, 9])}


def bounding_boxes():
    corner = torch.randint(0, 500, (BATCH, SEQUENCE, 2))
    return {**masked(), "bbox": torch.cat([corner, corner + 10], 2)}


ENCODERS = [
    hugging_face("bert", "BertForMaskedLM", masked),
    hugging_face("bert, classification", "BertForSequenceClassification", classified),
    hugging_face("bert, question answering", "BertForQuestionAnswering", spans, num_labels=2),
    hugging_face("roberta", "RobertaForMaskedLM", masked),
    hugging_face("distilbert", "DistilBertForMaskedLM", masked),
    hugging_face("albert", "AlbertForMaskedLM", masked),
    hugging_face("electra", "ElectraForMaskedLM", masked),
    hugging_face("deberta", "DebertaForMaskedLM", masked, relative_attention=True, pos_att_type=["c2p", "p2c"]),
    hugging_face("deberta-v2", "DebertaV2ForMaskedLM", masked, relative_attention=True, pos_att_type=["c2p", "p2c"]),
    hugging_face("camembert", "CamembertForMaskedLM", masked),
    hugging_face("xlm-roberta", "XLMRobertaForMaskedLM", masked),
    hugging_face("xlnet", "XLNetLMHeadModel", masked),
    hugging_face("mpnet", "MPNetForMaskedLM", masked),
    hugging_face("mobilebert", "MobileBertForMaskedLM", masked, intra_bottleneck_size=16, true_hidden_size=16),
    hugging_face("squeezebert", "SqueezeBertForMaskedLM", masked, q_groups=2, k_groups=2, v_groups=2,
                 post_attention_groups=1, intermediate_groups=2, output_groups=2, embedding_size=32),
    hugging_face("convbert", "ConvBertForMaskedLM", masked),
    hugging_face("roformer", "RoFormerForMaskedLM", masked),
    hugging_face("fnet", "FNetForMaskedLM", causal),
    hugging_face("ernie", "ErnieForMaskedLM", masked),
    hugging_face("layoutlm", "LayoutLMForMaskedLM", bounding_boxes, max_2d_position_embeddings=600),
    hugging_face("modernbert", "ModernBertForMaskedLM", masked, local_attention=8),
    hugging_face("esm", "EsmForMaskedLM", masked, mask_token_id=3),
    hugging_face("funnel", "FunnelForMaskedLM", masked, block_sizes=[1, 1], num_decoder_layers=1),
    hugging_face("rembert", "RemBertForMaskedLM", masked, input_embedding_size=16, output_embedding_size=16),
]
