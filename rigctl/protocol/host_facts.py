"""The answer to the order `facts`: what the agent of a Windows node tells about its host. Unknown values are None."""

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from rigctl.base.texts import printable

_Text: TypeAlias = Annotated[str, AfterValidator(lambda text: printable(text)[:256])]
_Number: TypeAlias = Annotated[int, Field(ge=0, le=2**62 - 1)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class HostCard(_Part):
    """A network interface of a Windows host."""

    name: _Text
    up: bool | None = None
    speed_bps: _Number | None = None
    mtu: _Number | None = None
    mac: _Text | None = None
    driver: _Text | None = None
    driver_date: _Text | None = None  # as in 2021-03-04
    driver_version: _Text | None = None
    driver_provider: _Text | None = None
    interrupt_moderation: _Number | None = None  # this and the next: numbers of the driver's standardized keywords
    rss: _Number | None = None
    rss_queues: _Number | None = None
    jumbo_packet: _Number | None = None  # bytes of a frame with its Ethernet header
    receive_buffers: _Number | None = None
    transmit_buffers: _Number | None = None
    hardware: bool | None = None
    addresses: list[_Text] = Field(default_factory=list)  # as in 10.0.0.3/24


class HostReply(_Part):
    """The facts of a Windows host. `firewall` maps domain, private and public to True if that firewall is on."""

    system: _Text | None = None  # as in Windows 10.0.19045
    hostname: _Text | None = None
    host_id: _Text | None = None  # MachineGuid
    boot_id: _Text | None = None
    cpu_model: _Text | None = None
    cpus: _Number | None = None
    memory_bytes: _Number | None = None
    hypervisor: bool | None = None
    power_plan: _Text | None = None
    administrator: bool | None = None
    firewall: dict[_Text, bool | None] = Field(default_factory=dict)
    path: _Text | None = None  # path of the agent's program
    interfaces: Annotated[list[HostCard], Field(max_length=32)]
