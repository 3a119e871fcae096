"""Write ``member.yaml``, the template of a cluster that another stack serves: ``python -m tools.member``.

    python -m tools.member            writes it
    python -m tools.member --check    exit status 1 where it is not what the templates say

A policy is written once, in ``template.yaml``. ``tools/member.in.yaml`` has what members alone have, and says by a line
``#= NAME`` where a block of the template is copied, with the comment above it. On the way

- what a block asks of a resource that a member does not have is imported from the home, which exports it;
- the role that SAM makes for a function becomes a role that this function may assume (``#= role NAME``);
- a schedule says its cluster;
- rights of the installer lose the condition on its function: that is the home's, and who may assume the role is asked;
- what an alias of YAML stands for is written out, because CloudFormation takes none and this template needs no SAM.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence

from tools.template import MEMBER, ROOT, TEMPLATE

SOURCE = ROOT / "tools" / "member.in.yaml"
_SECTION = re.compile(r"^(\w+):$")
_BLOCK = re.compile(r"^  (\w+):")
_COPY = re.compile(r"^  #= (role )?(\w+)$")
_OWN = re.compile(r"^  #= (\w+)$|^  (\w+):$", re.MULTILINE)
_ANCHOR, _ALIAS = re.compile(r"&(\w+) (?=[!\"])"), re.compile(r"(?<=[\[ ])\*(\w+)(?=[\],\s])")
#: What the installer does as the home's function: it is the home's role that may.
_OF_THE_HOME_S_INSTALLER = ("WriteTheLog", "TellOfAFailure")
_ITS_FUNCTION = "lambda:SourceFunctionArn: !GetAtt InstallerFunction.Arn"
#: A statement of a function's own policy, with the comment above it.
_STATEMENT = re.compile(r"(?:^ {12}#.*\n)*^ {12}- .*\n(?:^ {13,}.*\n?)*", re.MULTILINE)
_ROLE = """\
  {name}Role:
    Type: AWS::IAM::Role
    Properties:
      Path: *RolePath
      PermissionsBoundary: !If [HasBoundary, *PermissionsBoundaryArn, !Ref AWS::NoValue]
      AssumeRolePolicyDocument:
        Version: "2012-10-17"
        Statement:
          - Effect: Allow
            Principal: {{ AWS: !GetAtt home.{name}Role.Arn }}
            Action: sts:AssumeRole
      ManagedPolicyArns: [{policies}]
"""
_OWN_POLICY = """\
      Policies:
        - PolicyName: Own
          PolicyDocument:
            Version: "2012-10-17"
            Statement:
{statements}
"""

Blocks = Mapping[str, Mapping[str, str]]


def written(template: str, source: str) -> str:
    """The member's template. ``source``: what members alone have, and which blocks of the template they have too."""
    blocks, of_members = _blocks(template), _names(source)
    lines, section = [], ""
    for line in source.splitlines():
        if heading := _SECTION.match(line):
            section = heading[1]
        copy = _COPY.match(line)
        if copy and copy[1]:
            lines.append(_role(copy[2], blocks[section][copy[2]], of_members))
        elif copy:
            text = _copied(copy[2], blocks[section][copy[2]], section)
            # Between resources the template has an empty line.
            lines.append(text + "\n" if section == "Resources" else text)
        elif not line.startswith("#>"):
            lines.append(line)
    note = next(line for line in source.splitlines() if line.startswith("#>"))
    text = _imported("\n".join(lines), of_members).replace("\n\n\n", "\n\n")
    return f"#{note[2:]}\n{_without_aliases(text, template).rstrip()}\n"


def _names(source: str) -> set[str]:
    """The resources that a member has."""
    _, _, resources = source.partition("\nResources:\n")
    found = {copied or own for copied, own in _OWN.findall(resources.partition("\nOutputs:\n")[0])}
    return found | {f"{name}Role" for name in re.findall(r"^  #= role (\w+)$", resources, re.MULTILINE)}


def _blocks(template: str) -> Blocks:
    """By section and name, the lines of each block at the second level, with the comment above it."""
    sections: dict[str, dict[str, list[str]]] = {}
    section, block = "", ""
    above: list[str] = []
    for line in template.splitlines():
        if heading := _SECTION.match(line):
            section, block, above = heading[1], "", []
            sections[section] = {}
        elif section and (start := _BLOCK.match(line)):
            block = start[1]
            sections[section][block] = [*above, line]
            above = []
        elif line.startswith("  #"):
            above = [] if line.startswith("  # ---") else [*above, line]
        elif line.startswith("   ") and block:
            sections[section][block] += [*above, line]
            above = []
    return {name: {key: "\n".join(each) for key, each in those.items()} for name, those in sections.items()}


def _copied(name: str, block: str, section: str) -> str:
    if section != "Resources":
        return block
    if name == "InstallerPolicy":
        for sid in _OF_THE_HOME_S_INSTALLER:
            block = re.sub(rf"\n          - Sid: {sid}\n(?:            .*\n?)+", "\n", block)
    block = re.sub(rf"\n *Condition: {{ ArnEquals: {{ {re.escape(_ITS_FUNCTION)} }} }}", "", block)
    block = re.sub(rf"\n *ArnEquals: {{ {re.escape(_ITS_FUNCTION)} }}", "", block)
    block = re.sub(rf"\n *{re.escape(_ITS_FUNCTION)}", "", block)
    if name.endswith("Schedule"):
        block = re.sub(r"Input: (>-|')", r"Input: !Sub \1", block)
        block = re.sub(r'("door": "\w+"), ', r'\1, "cluster": "${ClusterName}", ', block)
    return block.rstrip()


def _role(name: str, function: str, of_members: set[str]) -> str:
    """The role that a function assumes for a member: the policies of its own role that are about a cluster."""
    _, _, policies = function.partition("\n      Policies:\n")
    managed = [one for one in re.findall(r"^        - !Ref (\w+)$", policies, re.MULTILINE) if one in of_members]
    text = _ROLE.format(name=name, policies=", ".join(f"!Ref {one}" for one in managed))
    statements = "\n".join(_statements(policies, of_members))
    return text + (_OWN_POLICY.format(statements=statements) if statements else "")


def _statements(policies: str, of_members: set[str]) -> Iterator[str]:
    """The statements of a function's own policy that are about no resource of the home."""
    _, _, own = policies.partition("        - Statement:\n")
    for one in _STATEMENT.findall(own):
        if all(name in of_members for name in re.findall(r"!GetAtt (\w+)", one)):
            yield "\n".join(f"  {line}" for line in one.rstrip().splitlines())


def _imported(text: str, of_members: set[str]) -> str:
    """The text in which what a member does not have is imported from its home."""

    def import_or_stay(found: re.Match[str]) -> str:
        is_said, name, attribute = found.groups()
        if not is_said and name in of_members:
            return found[0]
        return f'!ImportValue {{ "Fn::Sub": "${{Home}}-{name}{attribute or ""}" }}'

    return re.sub(r"!GetAtt (home\.)?(\w+)(?:\.(\w+))?", import_or_stay, text)


def _without_aliases(text: str, template: str) -> str:
    """The text with the value of each anchor, here or in the template, in the place of its aliases."""
    anchors = {
        found[1]: _value(source, found.end()) for source in (template, text) for found in _ANCHOR.finditer(source)
    }
    text = _ANCHOR.sub("", text)
    while _ALIAS.search(text):
        text = _ALIAS.sub(lambda alias: _ANCHOR.sub("", anchors[alias[1]]), text)
    return text


def _value(text: str, start: int) -> str:
    """The value that begins there and ends in the same line: in quotes, or in brackets behind a tag."""
    depth, quoted, position = 0, False, start
    while text[position] != "\n" and not (depth == 0 and not quoted and text[position] in ",]"):
        quoted ^= text[position] == '"'
        depth += not quoted and (text[position] == "[") - (text[position] == "]")
        position += 1
    return text[start:position]


def main(arguments: Sequence[str]) -> None:
    wanted = written(TEMPLATE.read_text(), SOURCE.read_text())
    if "--check" not in arguments:
        MEMBER.write_text(wanted)
    elif not MEMBER.exists() or MEMBER.read_text() != wanted:
        sys.exit(f"{MEMBER.name} is not what template.yaml and {SOURCE.relative_to(ROOT)} say: python -m tools.member")


if __name__ == "__main__":
    main(sys.argv[1:])
