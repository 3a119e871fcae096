"""``joinery doctor`` as a command: which cluster it looks at, and how it ends."""

import pytest

from joinery_cli.main import main


def test_a_person_who_names_no_cluster_is_asked_which(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, and the status of bad input."""
    monkeypatch.setenv("KUBECONFIG", "/nowhere/config")
    with pytest.raises(SystemExit) as ended:
        main(["doctor"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "joinery: which cluster? The kubeconfig's context names none of EKS: joinery doctor CLUSTER\n"
    )


def test_without_credentials_there_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not one a check."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "blue", "--region", "eu-north-1"])  # a region's session keeps another test's credentials
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "credentials" in line
    assert "aws sso login" in line


@pytest.mark.parametrize("command", [["doctor", "blue"], ["uninstall", "blue", "--nodes", "keep"]])
def test_a_region_is_not_guessed(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In another region there would be no stack, and the remedy would be to deploy there."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    monkeypatch.setenv("KUBECONFIG", "/nowhere/config")
    with pytest.raises(SystemExit) as ended:
        main(command)
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "joinery: in which region is cluster blue? Say --region eu-central-1, or set AWS_REGION\n"
    )


def test_help_says_what_the_exit_status_means(capsys: pytest.CaptureFixture[str]) -> None:
    """For scripts: 0, 1, 2."""
    with pytest.raises(SystemExit):
        main(["doctor", "--help"])
    printed = " ".join(capsys.readouterr().out.split())
    assert "0 where all is well, 1 where something is worth a look, 2 where something does not work" in printed
