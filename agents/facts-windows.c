/* The order `facts`: reports facts about a Windows host to `rigctl check`. PowerShell would take a second for each fact. */
#include "orders.h"

#include <iphlpapi.h>
#include <netioapi.h>
#include <powrprof.h>
#include <winternl.h>
#undef interface /* COM defines this name as a macro */
NTSYSAPI NTSTATUS NTAPI RtlGetVersion(OSVERSIONINFOW *version); /* declared in headers of drivers only */

#define INTERFACES_MAX 32
#define ADDRESSES_MAX 8 /* most addresses of an interface */
#define TEXT_MAX 128
#define ROOM_BYTES 4000 /* most bytes of an interface in the answer */
#define CLASS L"SYSTEM\\CurrentControlSet\\Control\\Class\\{4d36e972-e325-11ce-bfc1-08002be10318}" /* key of all network adapters */

/* Add UTF-16 text to a JSON string; all but printable ASCII is escaped. */
static void add_text(const wchar_t *text)
{
    for (; *text != L'\0'; text++)
        line_add(*text == L'"' || *text == L'\\' ? "\\%c" : *text >= L' ' && *text <= L'~' ? "%c" : "\\u%04x", *text);
}

/* Add `,"name":"text"`, or null if `text` is empty. */
static void add_wide(const char *name, const wchar_t *text)
{
    line_add(",\"%s\":%s", name, *text == L'\0' ? "null" : "\"");
    add_text(text);
    line_add("%s", *text == L'\0' ? "" : "\"");
}

/* Return a text of the registry, below HKEY_LOCAL_MACHINE; "" if it is missing. */
static const wchar_t *read_text(const wchar_t *key, const wchar_t *name, wchar_t text[TEXT_MAX])
{
    DWORD bytes = TEXT_MAX * sizeof *text;

    if (RegGetValueW(HKEY_LOCAL_MACHINE, key, name, RRF_RT_REG_SZ | RRF_SUBKEY_WOW6464KEY, NULL, text, &bytes) != ERROR_SUCCESS)
        text[0] = L'\0';
    return text;
}

/* Return a number of the registry, below HKEY_LOCAL_MACHINE; -1 if it is missing. */
static int64_t read_number(const wchar_t *key, const wchar_t *name)
{
    DWORD number, bytes = sizeof number;

    return RegGetValueW(HKEY_LOCAL_MACHINE, key, name, RRF_RT_REG_DWORD | RRF_SUBKEY_WOW6464KEY, NULL, &number, &bytes) == ERROR_SUCCESS
               ? (int64_t)number
               : -1;
}

static void add_system(void)
{
    OSVERSIONINFOW version = {.dwOSVersionInfoSize = sizeof version};

    if (RtlGetVersion(&version) != 0) /* GetVersionEx reports Windows 8 on all later versions too */
        line_add(",\"system\":\"Windows\"");
    else
        line_add(",\"system\":\"Windows %lu.%lu.%lu\"", version.dwMajorVersion, version.dwMinorVersion, version.dwBuildNumber);
}

/* Add the number of the boot or, where Windows does not count boots, the time of the boot. */
static void add_boot(void)
{
    struct {
        LARGE_INTEGER boot, rest[5];
    } times = {0};
    int64_t number = read_number(L"SYSTEM\\CurrentControlSet\\Control\\Session Manager\\Memory Management\\PrefetchParameters", L"BootId");

    if (number > 0)
        line_add(",\"boot_id\":\"boot %lld\"", (long long)number);
    else if (NtQuerySystemInformation(SystemTimeOfDayInformation, &times, sizeof times, NULL) == 0)
        line_add(",\"boot_id\":\"booted %lld\"", (long long)(times.boot.QuadPart / 10000000));
    else
        line_add(",\"boot_id\":null");
}

/* Return 1 in a virtual machine, else 0; -1: unknown. A Hyper-V host runs on the hypervisor too, but may create machines. */
static int is_virtual(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;

    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(1), "c"(0));
    if ((c >> 31 & 1) == 0)
        return 0;
    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(0x40000000), "c"(0));
    if (b != 0x7263694d || c != 0x666f736f) /* "Microsoft Hv" */
        return 1;
    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(0x40000003), "c"(0));
    return (b & 1) == 0;
#else
    return -1;
#endif
}

/* Add the power plan. The plans of Windows have their English names, in every language of Windows. */
static void add_power_plan(void)
{
    static const struct {
        unsigned long first; /* first 32 bits of the GUID */
        const wchar_t *name;
    } known[] = {{0x8c5e7fda, L"High performance"}, {0x381b4222, L"Balanced"}, {0xa1841308, L"Power saver"},
                 {0xe9a42b02, L"Ultimate Performance"}};
    wchar_t name[TEXT_MAX] = L"";
    DWORD bytes = sizeof name;
    GUID *plan = NULL;

    if (PowerGetActiveScheme(NULL, &plan) == ERROR_SUCCESS && plan != NULL) {
        if (PowerReadFriendlyName(NULL, plan, NULL, NULL, (UCHAR *)name, &bytes) != ERROR_SUCCESS)
            name[0] = L'\0';
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (plan->Data1 == known[i].first)
                wcscpy(name, known[i].name);
        LocalFree(plan);
    }
    add_wide("power_plan", name);
}

static int is_administrator(void)
{
    TOKEN_ELEVATION elevation = {0};
    HANDLE token;
    DWORD bytes;
    int known = -1;

    if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token))
        return -1;
    if (GetTokenInformation(token, TokenElevation, &elevation, sizeof elevation, &bytes))
        known = elevation.TokenIsElevated != 0;
    CloseHandle(token);
    return known;
}

/* Add for each profile whether its firewall is on. A policy of the domain overrides the host's own setting. */
static void add_firewall(void)
{
    static const struct {
        const char *name;
        const wchar_t *policy, *own;
    } profiles[] = {
#define PROFILE(name, key, own_key) \
    {name, L"SOFTWARE\\Policies\\Microsoft\\WindowsFirewall\\" key, \
     L"SYSTEM\\CurrentControlSet\\Services\\SharedAccess\\Parameters\\FirewallPolicy\\" own_key}
        PROFILE("domain", L"DomainProfile", L"DomainProfile"),
        PROFILE("private", L"StandardProfile", L"StandardProfile"),
        PROFILE("public", L"PublicProfile", L"PublicProfile"),
    };

    line_add(",\"firewall\":{");
    for (size_t i = 0; i < sizeof profiles / sizeof *profiles; i++) {
        int64_t on = read_number(profiles[i].policy, L"EnableFirewall");

        if (on < 0)
            on = read_number(profiles[i].own, L"EnableFirewall");
        line_add("%s\"%s\":%s", i > 0 ? "," : "", profiles[i].name, on < 0 ? "null" : on > 0 ? "true" : "false");
    }
    line_add("}");
}

/* Add a setting of a driver, a number that the registry holds as text. */
static void add_setting(const char *name, const wchar_t *key, const wchar_t *keyword)
{
    wchar_t text[TEXT_MAX];

    line_add_count(name, iswdigit(*read_text(key, keyword, text)) ? _wtoi(text) : -1);
}

/* Add driver, version, date and settings of the adapter with this GUID. The registry has 3-4-2021 for the date 2021-03-04. */
static void add_driver(const char *adapter)
{
    wchar_t key[160], text[TEXT_MAX], wanted[TEXT_MAX];
    int month, day, year, number = 0;

    swprintf(wanted, TEXT_MAX, L"%hs", adapter);
    do
        swprintf(key, sizeof key / sizeof *key, L"%ls\\%04d", CLASS, number);
    while (_wcsicmp(read_text(key, L"NetCfgInstanceId", text), wanted) != 0 && ++number < 200);
    add_wide("driver", read_text(key, L"DriverDesc", text));
    add_wide("driver_version", read_text(key, L"DriverVersion", text));
    add_wide("driver_provider", read_text(key, L"ProviderName", text));
    if (swscanf(read_text(key, L"DriverDate", text), L"%d-%d-%d", &month, &day, &year) == 3)
        line_add(",\"driver_date\":\"%04d-%02d-%02d\"", year, month, day);
    else
        line_add(",\"driver_date\":null");
    add_setting("interrupt_moderation", key, L"*InterruptModeration");
    add_setting("rss", key, L"*RSS");
    add_setting("rss_queues", key, L"*NumRssQueues");
    add_setting("jumbo_packet", key, L"*JumboPacket");
    add_setting("receive_buffers", key, L"*ReceiveBuffers");
    add_setting("transmit_buffers", key, L"*TransmitBuffers");
}

static void add_addresses(const IP_ADAPTER_UNICAST_ADDRESS *address)
{
    line_add(",\"addresses\":[");
    for (int count = 0; address != NULL && count < ADDRESSES_MAX; address = address->Next) {
        const struct sockaddr *found = address->Address.lpSockaddr;
        char text[INET6_ADDRSTRLEN];
        const void *bytes = found->sa_family == AF_INET6 ? (const void *)&((const struct sockaddr_in6 *)found)->sin6_addr
                                                         : (const void *)&((const struct sockaddr_in *)found)->sin_addr;

        if (inet_ntop(found->sa_family, bytes, text, sizeof text) != NULL)
            line_add("%s\"%s/%d\"", count++ > 0 ? "," : "", text, address->OnLinkPrefixLength);
    }
    line_add("]");
}

static void add_interface(const IP_ADAPTER_ADDRESSES *adapter)
{
    bool known_speed = adapter->TransmitLinkSpeed != 0 && adapter->TransmitLinkSpeed != UINT64_MAX;
    MIB_IF_ROW2 row = {.InterfaceLuid = adapter->Luid};
    bool known = GetIfEntry2(&row) == NO_ERROR;

    line_add("{\"name\":\"");
    add_text(*adapter->FriendlyName != L'\0' ? adapter->FriendlyName : L"?");
    line_add("\"");
    line_add_flag("up", adapter->OperStatus == IfOperStatusUp);
    line_add_count("speed_bps", known_speed ? (int64_t)adapter->TransmitLinkSpeed : -1);
    line_add_count("mtu", adapter->Mtu == 0 || adapter->Mtu == UINT32_MAX ? -1 : (int64_t)adapter->Mtu);
    line_add(",\"mac\":%s", adapter->PhysicalAddressLength == 0 ? "null" : "\"");
    for (ULONG i = 0; i < adapter->PhysicalAddressLength; i++)
        line_add("%s%02x", i > 0 ? ":" : "", adapter->PhysicalAddress[i]);
    line_add("%s", adapter->PhysicalAddressLength == 0 ? "" : "\"");
    add_driver(adapter->AdapterName);
    line_add_flag("hardware", known ? row.InterfaceAndOperStatusFlags.HardwareInterface : -1);
    add_addresses(adapter->FirstUnicastAddress);
    line_add("}");
}

static void add_interfaces(void)
{
    ULONG bytes = 0, flags = GAA_FLAG_SKIP_ANYCAST | GAA_FLAG_SKIP_MULTICAST | GAA_FLAG_SKIP_DNS_SERVER;
    IP_ADAPTER_ADDRESSES *all = NULL, *at;
    int count = 0;

    GetAdaptersAddresses(AF_UNSPEC, flags, NULL, NULL, &bytes);
    if (bytes > 0 && (all = malloc(bytes)) != NULL && GetAdaptersAddresses(AF_UNSPEC, flags, NULL, all, &bytes) != NO_ERROR) {
        free(all);
        all = NULL;
    }
    line_add(",\"interfaces\":[");
    for (at = all; at != NULL && count < INTERFACES_MAX && line_length() < ANSWER_MAX - ROOM_BYTES; at = at->Next) {
        line_add("%s", count++ > 0 ? "," : "");
        add_interface(at);
    }
    line_add("]");
    free(all);
}

void orders_facts(struct order *order)
{
    wchar_t name[TEXT_MAX] = L"", path[MAX_PATH] = L"", text[TEXT_MAX];
    DWORD room = TEXT_MAX;
    MEMORYSTATUSEX memory = {.dwLength = sizeof memory};

    answer_begin_ok(order->id);
    add_system();
    if (!GetComputerNameExW(ComputerNameDnsHostname, name, &room))
        name[0] = L'\0';
    add_wide("hostname", name);
    add_wide("host_id", read_text(L"SOFTWARE\\Microsoft\\Cryptography", L"MachineGuid", text));
    add_boot();
    add_wide("cpu_model", read_text(L"HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0", L"ProcessorNameString", text));
    line_add_count("cpus", sample_cpus());
    line_add_count("memory_bytes", GlobalMemoryStatusEx(&memory) ? (int64_t)memory.ullTotalPhys : -1);
    line_add_flag("hypervisor", is_virtual());
    add_power_plan();
    line_add_flag("administrator", is_administrator());
    if (GetModuleFileNameW(NULL, path, MAX_PATH) == MAX_PATH)
        path[0] = L'\0';
    add_wide("path", path);
    add_firewall();
    add_interfaces();
    line_end();
}
