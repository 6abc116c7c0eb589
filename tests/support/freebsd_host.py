"""What a FreeBSD host says: written after the manual pages of its tools and the Handbook, not recorded on one."""

IFCONFIG = """\
ix0: flags=8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> metric 0 mtu 9000
\toptions=e53fbb<RXCSUM,TXCSUM,VLAN_MTU,VLAN_HWTAGGING,JUMBO_MTU,VLAN_HWCSUM,TSO4,TSO6,WOL_UCAST,WOL_MCAST>
\tether 0c:c4:7a:12:34:56
\tinet 10.0.0.1 netmask 0xffffff00 broadcast 10.0.0.255
\tinet6 fe80::ec4:7aff:fe12:3456%ix0 prefixlen 64 scopeid 0x1
\tinet6 2001:db8::1 prefixlen 64
\tmedia: Ethernet autoselect (10Gbase-T <full-duplex,rxpause,txpause>)
\tstatus: active
\tnd6 options=29<PERFORMNUD,IFDISABLED,AUTO_LINKLOCAL>
"""
NO_CARRIER = """\
em0: flags=8802<BROADCAST,SIMPLEX,MULTICAST> metric 0 mtu 1500
\tether 00:25:90:00:00:01
\tmedia: Ethernet autoselect
\tstatus: no carrier
"""
GIGABIT = IFCONFIG.replace("10Gbase-T <full-duplex,rxpause,txpause>", "1000baseT <full-duplex>")


PCICONF = """\
ix0@pci0:3:0:0:\tclass=0x020000 card=0x084f15d9 chip=0x15288086 rev=0x01 hdr=0x00
    cap 01[40] = powerspec 3  supports D0 D3  current D0
    cap 10[a0] = PCI-Express 2 endpoint max data 256(512) FLR RO NS
                 max read 512
                 link x4(x8) speed 5.0(8.0) ASPM disabled(L0s/L1)
"""
CC_TABLE = """\

CCmod           D PCB count
cubic           * 21
newreno           0
"""
ROUTED = (
    "   route to: 10.0.0.2 destination: 10.0.0.0        mask: 255.255.255.0         fib: 0   interface: ix0       "
    "flags: <UP,DONE,PINNED>  recvpipe  sendpipe  ssthresh  rtt,msec    mtu        weight    expire        "
    "0         0         0         0      9000         1         0 "
)
BY_GATEWAY = ROUTED.replace("fib: 0", "gateway: 192.168.1.1 fib: 0").replace("ix0", "em0").replace("9000", "1500")
NETSTAT = """\
Routing tables

Internet:
Destination        Gateway            Flags     Netif Expire
default            192.168.1.1        UGS         em0
10.0.0.0/24        link#1             U           ix0
10.0.0.1           link#3             UHS         lo0

Internet6:
Destination                       Gateway                       Flags     Netif Expire
default                           fd77::1                       UGS         em0
::1                               link#3                        UHS         lo0
fe80::%ix0/64                     link#1                        U           ix0
"""
OTHERS = """\
lagg0: flags=8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> metric 0 mtu 1500
\tether 0c:c4:7a:12:34:57
\tinet 192.168.1.20 netmask 0xffffff00 broadcast 192.168.1.255
\tinet6 2001:db8:1::7 prefixlen 64 autoconf temporary
\tlaggproto lacp lagghash l2,l3,l4
\tlaggport: ix1 flags=1c<ACTIVE,COLLECTING,DISTRIBUTING>
\tmedia: Ethernet autoselect
\tstatus: active
ix0.20: flags=8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> metric 0 mtu 9000
\tinet 10.20.0.1 netmask 0xffff0000 broadcast 10.20.255.255
\tvlan: 20 vlanproto: 802.1q vlanpcp: 0 parent interface: ix0
lo0: flags=8049<UP,LOOPBACK,RUNNING,MULTICAST> metric 0 mtu 16384
\tinet 127.0.0.1 netmask 0xff000000
"""
ANSWER = {
    "machine": "FreeBSD amd64",
    "hostname": "freenas.lab",
    "os": 'NAME=FreeBSD\nPRETTY_NAME="FreeBSD 14.1-RELEASE"',
    "cpuinfo": "none",
    "boot": "4c4c4544-0042-3510-8054-b7c04f563332",
    "namespace": "{ sec = 1795100000, usec = 12 } Thu Nov 19 14:53:20 2026",
    "ssh": "192.168.1.2 50122 192.168.1.20 22",
    "uid": "0",
    "ip": "/sbin/ifconfig",
    "routes": NETSTAT,
    "interfaces": IFCONFIG + NO_CARRIER + OTHERS,
}


def freebsd_answer(**changed: str) -> str:
    return "".join(f"\n@@rigctl {key}\n{text}\n" for key, text in (ANSWER | changed).items())
