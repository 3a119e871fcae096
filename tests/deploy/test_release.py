"""The SAM CLI as people use it for a release: what it uploads, and where it keeps answers."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import boto3
import pytest

import joinery
from simulator.awsserver.account import moto
from tools.release import package_template
from tools.template import BUILD, ROOT, load

SAM = ROOT / ".venv-sam" / "bin" / "sam"
REGION: Final = "eu-central-1"
#: As `sam deploy` names the stack whose bucket it uploads to.
MANAGED = "aws-sam-cli-managed-default"


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """S3 and CloudFormation of a stand-in, for boto3 and for the SAM CLI."""
    with moto() as url:
        for name, value in {
            "AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": REGION, "SAM_CLI_TELEMETRY": "0",
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        yield


@pytest.mark.usefixtures("aws")
def test_the_released_template_takes_all_its_code_from_the_bucket(tmp_path: Path) -> None:
    """Below the version, so that no release replaces what another one runs. It says what the repository of serverless
    applications asks for, and its moment, by which the installer is called.
    """
    s3 = boto3.client("s3", region_name=REGION)
    s3.create_bucket(Bucket="artifacts", CreateBucketConfiguration={"LocationConstraint": REGION})
    into = tmp_path / "released.yaml"
    package_template(into, BUILD, sam=SAM, bucket="artifacts", region=REGION)
    template = load(into)
    own = [r["Properties"] for r in template["Resources"].values() if r["Type"].startswith("AWS::Serverless")]
    places = [one.get("CodeUri") or one["ContentUri"] for one in own]
    published = template["Metadata"]["AWS::ServerlessRepo::Application"]
    prefix = f"s3://artifacts/joinery/{joinery.__version__}/"
    assert all(str(one).startswith(prefix) for one in [*places, published["LicenseUrl"], published["ReadmeUrl"]])
    assert len(places) == len([*BUILD.glob("*.zip")])
    assert template["Mappings"]["Release"]["Joinery"]["DeployedAt"] != "never"
    assert len(s3.list_objects_v2(Bucket="artifacts")["Contents"]) >= len(set(map(str, places)))


@pytest.mark.usefixtures("aws")
def test_answers_to_sam_deploy_guided_outlast_the_next_build(tmp_path: Path) -> None:
    """They are kept in the repository's root, not beside what was built; and there are eight questions."""
    _managed_bucket()
    (tmp_path / ".aws-sam").mkdir()
    (tmp_path / ".aws-sam" / "build").symlink_to(BUILD)
    configuration = tmp_path / "samconfig.toml"
    configuration.write_text((ROOT / "samconfig.toml").read_text())
    answers = ["joinery-blue", REGION, "blue", "observe", *[""] * 6, "n", "y", "n", "y", "", "", ""]
    said = subprocess.run(
        [SAM, "deploy", "--guided"], cwd=tmp_path, input="\n".join(answers), capture_output=True, text=True, check=False
    ).stdout
    assert re.findall(r"Parameter (\w+) \[", said) == list(load()["Parameters"])
    assert len(load()["Parameters"]) <= 8
    assert 'ClusterName=\\"blue\\" Mode=\\"observe\\"' in configuration.read_text()
    assert not (BUILD / "samconfig.toml").exists()


def _managed_bucket() -> None:
    """The stack with a bucket that ``sam deploy`` makes by itself, and the stand-in only in part."""
    made: dict[str, Any] = {
        "Resources": {"Bucket": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "aws-sam-cli-managed"}}},
        "Outputs": {"SourceBucket": {"Value": {"Ref": "Bucket"}}},
    }
    boto3.client("cloudformation", region_name=REGION).create_stack(
        StackName=MANAGED,
        TemplateBody=json.dumps(made),
        Tags=[{"Key": "ManagedStackSource", "Value": "AwsSamCli"}],
    )
