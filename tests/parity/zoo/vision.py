"""Images: transformers, hierarchical ones, convolutional nets with BatchNorm."""

import torch

from .case import BATCH, hugging_face, ids, images


def segmented():
    return {"pixel_values": torch.randn(BATCH, 3, 64, 64), "labels": torch.randint(0, 3, (BATCH, 64, 64))}


def captioned():
    return {"input_ids": ids(), "pixel_values": torch.randn(BATCH, 3, 16, 16), "return_loss": True}


def regressed():
    return {"pixel_values": torch.randn(BATCH, 3, 64, 64), "labels": torch.randn(BATCH, 64, 64).abs()}


def unlabelled():
    return {"pixel_values": torch.randn(BATCH, 3, 16, 16), "noise": torch.rand(BATCH, 16)}


def filmed():
    return {"pixel_values": torch.randn(BATCH, 4, 3, 16, 16), "labels": torch.randint(0, 3, (BATCH,))}


def enlarged():
    return {"pixel_values": torch.randn(BATCH, 3, 16, 16)}


def closeness(output, batch):
    """To the same image, enlarged."""
    wanted = torch.nn.functional.interpolate(batch["pixel_values"], scale_factor=2, mode="nearest")
    return torch.nn.functional.l1_loss(output.reconstruction, wanted)


TOWERS = {
    "text_config": {"vocab_size": 96, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
                    "num_attention_heads": 4, "max_position_embeddings": 64, "eos_token_id": 2},
    "vision_config": {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
                      "image_size": 16, "patch_size": 4},
}

VISION = [
    hugging_face("vit", "ViTForImageClassification", images()),
    hugging_face("deit", "DeiTForImageClassification", images()),
    hugging_face("beit", "BeitForImageClassification", images(), use_relative_position_bias=True),
    hugging_face("dinov2", "Dinov2ForImageClassification", images()),
    hugging_face("vit_mae", "ViTMAEForPreTraining", unlabelled, decoder_hidden_size=16, decoder_num_hidden_layers=1,
                 decoder_num_attention_heads=2, decoder_intermediate_size=24),
    hugging_face("swin", "SwinForImageClassification", images(size=32), image_size=32, embed_dim=16, depths=[2, 2],
                 num_heads=[2, 4], num_attention_heads=[2, 4], window_size=4),
    hugging_face("swinv2", "Swinv2ForImageClassification", images(size=32), image_size=32, embed_dim=16, depths=[2, 2],
                 num_heads=[2, 4], num_attention_heads=[2, 4], window_size=4),
    hugging_face("pvt", "PvtForImageClassification", images(size=64), image_size=64, hidden_sizes=[8, 16, 24, 32],
                 depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 3, 4]),
    hugging_face("segformer", "SegformerForSemanticSegmentation", segmented, hidden_sizes=[8, 16, 24, 32],
                 depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 3, 4], decoder_hidden_size=16),
    hugging_face("glpn", "GLPNForDepthEstimation", regressed, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1],
                 num_attention_heads=[1, 2, 3, 4], decoder_hidden_size=16, bake=True),
    hugging_face("levit", "LevitForImageClassification", images(size=64), image_size=64, hidden_sizes=[16, 24, 32],
                 num_attention_heads=[2, 2, 4], depths=[1, 1, 1], key_dim=[8, 8, 8], patch_size=16),
    hugging_face("poolformer", "PoolFormerForImageClassification", images(size=64), hidden_sizes=[8, 16, 24, 32],
                 depths=[1, 1, 1, 1]),
    hugging_face("convnext", "ConvNextForImageClassification", images(size=64), hidden_sizes=[8, 16, 24, 32],
                 depths=[1, 1, 1, 1]),
    hugging_face("convnextv2", "ConvNextV2ForImageClassification", images(size=64), hidden_sizes=[8, 16, 24, 32],
                 depths=[1, 1, 1, 1]),
    hugging_face("resnet", "ResNetForImageClassification", images(size=32), embedding_size=8,
                 hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]),
    hugging_face("regnet", "RegNetForImageClassification", images(size=32), embedding_size=8,
                 hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], groups_width=4),
    hugging_face("bit", "BitForImageClassification", images(size=32), embedding_size=32,
                 hidden_sizes=[32, 64, 96, 128], depths=[1, 1, 1, 1], num_groups=4),
    hugging_face("mobilenet_v1", "MobileNetV1ForImageClassification", images(size=32), depth_multiplier=0.25),
    hugging_face("mobilenet_v2", "MobileNetV2ForImageClassification", images(size=64, rows=8),
                 depth_multiplier=0.25),
    hugging_face("mobilevit", "MobileViTForImageClassification", images(size=64), image_size=64, patch_size=2,
                 hidden_sizes=[16, 24, 32], neck_hidden_sizes=[8, 8, 16, 16, 24, 32, 32]),
    hugging_face("efficientnet", "EfficientNetForImageClassification", images(size=32), width_coefficient=0.25,
                 depth_coefficient=0.25, hidden_dim=320),
    hugging_face("clip", "CLIPModel", captioned, projection_dim=16, **TOWERS),
    hugging_face("siglip", "SiglipModel", captioned, **TOWERS),
    hugging_face("focalnet", "FocalNetForImageClassification", images(size=32), image_size=32, embed_dim=16, depths=[1, 1],
                 focal_levels=[2, 2], focal_windows=[3, 3], hidden_sizes=[16, 32]),
    hugging_face("swiftformer", "SwiftFormerForImageClassification", images(size=64), image_size=64, depths=[1, 1, 1, 1],
                 embed_dims=[8, 16, 24, 32]),
    hugging_face("hiera", "HieraForImageClassification", images(size=64), image_size=[64, 64], patch_size=[7, 7], embed_dim=8,
                 depths=[1, 1, 1, 1], num_heads=[1, 2, 4, 8]),
    hugging_face("videomae", "VideoMAEForVideoClassification", filmed, num_frames=4, tubelet_size=2),
    hugging_face("vivit", "VivitForVideoClassification", filmed, num_frames=4, tubelet_size=[2, 4, 4]),
    hugging_face("swin2sr", "Swin2SRForImageSuperResolution", enlarged, embed_dim=16, depths=[2], num_heads=[2],
                 num_attention_heads=[2], window_size=4, patch_size=1, upscale=2, loss=closeness),
]
