"""Puts the program that DUNLIN_PROGRAM names into the wheel, and tags the wheel for the systems that can run it.

The tag follows from the program itself, so it promises only what the program holds: one for Linux that needs no loader
is static, and runs with any C library.
"""

import os
import struct
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_ELF_MACHINES = {62: "x86_64", 183: "aarch64"}
_MACH_MACHINES = {0x01000007: "x86_64", 0x0100000C: "arm64"}
_PT_INTERP = 3


def platform_of(program: bytes) -> str:
    """The platform tag of a program, by the head of its file."""
    if program[:6] == b"\x7fELF\x02\x01":
        machine = _ELF_MACHINES[struct.unpack_from("<H", program, 18)[0]]
        headers, size, count = (struct.unpack_from("<Q", program, 32)[0], *struct.unpack_from("<HH", program, 54))
        kinds = [struct.unpack_from("<I", program, headers + size * place)[0] for place in range(count)]
        is_static = _PT_INTERP not in kinds
        return f"manylinux2014_{machine}.musllinux_1_1_{machine}" if is_static else f"linux_{machine}"
    if program[:4] == b"\xcf\xfa\xed\xfe":
        machine = _MACH_MACHINES[struct.unpack_from("<I", program, 4)[0]]
        return f"macosx_11_0_{machine}"
    if program[:2] == b"MZ":
        return "win_amd64"
    raise SystemExit("DUNLIN_PROGRAM is no program of a system that is known here")


class ProgramHook(BuildHookInterface):
    """Adds the program to a wheel; an editable install has none."""

    def initialize(self, version, build_data):
        if version == "editable":
            return
        path = os.environ.get("DUNLIN_PROGRAM")
        if not path:
            raise SystemExit("set DUNLIN_PROGRAM to the path of a dunlin program; launchers/build does")
        program = Path(path)
        data = program.read_bytes()
        platform = platform_of(data)
        name = "dunlin.exe" if platform.startswith("win") else "dunlin"
        build_data["force_include"][str(program.resolve())] = f"dunlin_redis/bin/{name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
