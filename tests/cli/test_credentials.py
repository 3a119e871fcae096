"""AWS and a cluster that cannot be read from a person's desk: one line that says what to do about it."""

from pathlib import Path

import pytest
from botocore import exceptions as botocore

from joinery.gateways.aws import translated
from joinery.objects.errors import ConfigurationError, JoineryError, UnavailableError
from joinery_cli.advice import reading_aws
from tests.cli.conftest import Run, shell

DOING = "describing instance types"


@pytest.fixture(autouse=True)
def _signed_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A desk with one profile and no credentials."""
    (tmp_path / "config").write_text("[profile staging]\nregion = eu-west-1\n")
    for name in (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_PROFILE",
        "AWS_DEFAULT_PROFILE",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def test_without_credentials_it_is_said_where_they_come_from(run: Run) -> None:
    """Nothing but the remedy is news to whoever is not signed in."""
    outcome = run("catalog", "--save", "-", "--region", "eu-south-1")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err == (
        "joinery: describing instance types: Unable to locate credentials: name a profile "
        "(AWS_PROFILE=NAME; there are: staging), or sign in (aws sso login, aws configure)\n"
    )


def test_an_unknown_profile_is_told_which_there_are(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slip in AWS_PROFILE is the commonest of all."""
    monkeypatch.setenv("AWS_PROFILE", "stagign")
    outcome = run("plan", "--catalog", "aws", "--region", "eu-south-2", "-f", "examples/cluster.yaml")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.endswith(
        "The config profile (stagign) could not be found: AWS_PROFILE names it; is it staging? (there are: staging)\n"
    )


def _refusal(code: str) -> botocore.ClientError:
    return botocore.ClientError({"Error": {"Code": code, "Message": "no"}}, "GetProducts")


@pytest.mark.parametrize(
    ("cause", "advice"),
    [
        (_refusal("ExpiredTokenException"), "have expired: sign in again (aws sso login), or name another profile"),
        (_refusal("RequestExpired"), "have expired: sign in again"),
        (botocore.UnauthorizedSSOTokenError(), "have expired: sign in again"),
        (botocore.TokenRetrievalError(provider="sso", error_msg="gone"), "have expired: sign in again"),
        (
            _refusal("UnrecognizedClientException"),
            "AWS does not know these credentials, or the account has not enabled the region eu-west-1",
        ),
        (
            _refusal("AuthFailure"),
            "AWS does not know these credentials, or the account has not enabled the region eu-west-1",
        ),
        (_refusal("AccessDeniedException"), "the credentials may not: they need pricing:GetProducts"),
        (_refusal("UnauthorizedOperation"), "they need pricing:GetProducts"),
    ],
)
def test_refusals_of_aws_are_told_what_to_do(cause: Exception, advice: str) -> None:
    """A person can sign in again, so an expired token is no reason to wait; and exit status 2."""
    with pytest.raises(ConfigurationError) as caught, reading_aws("eu-west-1"), translated(DOING):
        raise cause
    assert str(caught.value).startswith(DOING)
    assert advice in str(caught.value)


def test_an_endpoint_that_is_nowhere_is_told_its_region() -> None:
    """No network, or no such region: nothing that retrying at once would mend."""
    unreachable = botocore.EndpointConnectionError(endpoint_url="https://ec2.eu-west-9.amazonaws.com/")
    with pytest.raises(UnavailableError, match=DOING) as caught, reading_aws("eu-west-9"), translated(DOING):
        raise unreachable
    assert str(caught.value).endswith(": is there a region eu-west-9, and a network?")


@pytest.mark.parametrize("cause", [_refusal("Throttling"), _refusal("InvalidParameterValue")])
def test_other_errors_stay_as_they_are(cause: Exception) -> None:
    """Advice that does not fit is worse than none."""
    with pytest.raises(JoineryError) as caught, reading_aws("eu-west-1"), translated(DOING):
        raise cause
    assert str(caught.value).count(": ") == 2


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("absent/prices.json", "there is no folder {}/absent"),
        ("", "is a folder"),
        ("a-file/prices.json", "there is no folder {}/a-file"),
    ],
)
def test_a_catalogue_that_cannot_be_saved_is_told_before_it_is_read(
    run: Run, tmp_path: Path, path: str, problem: str
) -> None:
    """Sixty requests are not made for nothing."""
    (tmp_path / "a-file").touch()
    target = tmp_path / path
    outcome = run("catalog", "--save", str(target), "--region", "eu-south-1")
    assert (outcome.status, outcome.err) == (2, f"joinery: --save {target}: {problem.format(tmp_path)}\n")


def test_without_a_cluster_it_is_said_that_files_need_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever types ``joinery plan`` first has neither read the help nor a kubeconfig."""
    config = tmp_path / "kubeconfig"
    monkeypatch.setenv("KUBECONFIG", str(config))
    absent = shell(["plan"])
    assert absent.status == 2
    assert absent.err.endswith("; files need no cluster: give them by -f FILE\n")
    config.write_text(
        "{apiVersion: v1, kind: Config, current-context: a, users: [{name: a, user: {token: t}}],"
        " clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}], contexts: [{name: a, context: {cluster: a, "
        "user: a}}]}"
    )
    silent = shell(["plan"])
    assert silent.status == 1
    assert silent.err.endswith("; does kubectl get nodes reach the cluster? files need none: give them by -f FILE\n")
