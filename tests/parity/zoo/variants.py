"""One model trained in several ways: frozen parts, adapters, autocast, several losses."""

VARIANTS = []
