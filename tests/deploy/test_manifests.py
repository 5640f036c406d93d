"""The Kubernetes manifests hold to the schemas of Kubernetes (lane `kubernetes`)."""

from pathlib import Path

import pytest
import yaml

validate = pytest.importorskip("kubernetes_validate")

MANIFESTS = sorted((Path(__file__).parents[2] / "deploy" / "kubernetes").glob("*.yaml"))
DOCUMENTS = [(path.name, each) for path in MANIFESTS for each in yaml.safe_load_all(path.read_text())]


@pytest.mark.parametrize("version", ["1.29", validate.latest_version()])
@pytest.mark.parametrize(("name", "document"), DOCUMENTS, ids=[f"{name}-{each['kind']}" for name, each in DOCUMENTS])
def test_a_manifest_is_what_kubernetes_takes(name: str, document: dict[str, object], version: str) -> None:
    validate.validate(document, version, strict=True)


def test_a_field_that_is_not_there_is_found() -> None:
    wrong = DOCUMENTS[0][1] | {"sepc": {}}
    with pytest.raises(validate.ValidationError):
        validate.validate(wrong, validate.latest_version(), strict=True)
