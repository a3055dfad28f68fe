/* remuda doctor: the operating system and the kubelet around the devices. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/doctor.h"
#include "io/clock.h"

#define WEEK_SEC    ((time_t) 7 * 86400)
#define WATCHES_MIN 8192
#define KUBELET_PKI "/var/lib/kubelet/pki"

static void check_permissions(const struct doctor_patient *p, struct doctor_finding *f)
{
        for (size_t i = 0; i < p->inventory->device_count; i++)
                for (size_t n = 0; n < p->inventory->devices[i].node_count; n++) {
                        const char *node = p->inventory->devices[i].nodes[n];

                        if (access(node, F_OK) == 0 && access(node, R_OK | W_OK) < 0) {
                                doctor_found(
                                        f, DOCTOR_WARN,
                                        "put the users of the device into its group (ls -l), or write a udev "
                                        "rule",
                                        "this user may not open %s", node);
                                return;
                        }
                }
        doctor_found(f, DOCTOR_PASS, "", "this user may open every device file");
}

static void check_kernel_log(const struct doctor_patient *p, struct doctor_finding *f)
{
        CLEANUP(close_p) int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

        (void) p;
        if (fd < 0)
                doctor_found(f, DOCTOR_WARN, "give the agent CAP_SYSLOG, or set kernel.dmesg_restrict=0",
                             "the kernel log cannot be read: %s", strerrordesc_np(errno));
        else
                doctor_found(f, DOCTOR_PASS, "", "the kernel log can be read");
}

static void check_clock(const struct doctor_patient *p, struct doctor_finding *f)
{
        struct timex t = { .modes = 0 };
        int state = adjtimex(&t);

        (void) p;
        if (state < 0 || state == TIME_ERROR || (t.status & STA_UNSYNC) != 0)
                doctor_found(f, DOCTOR_WARN,
                             "run chrony or systemd-timesyncd: certificates and leases want true time",
                             "the clock is not synchronised");
        else
                doctor_found(f, DOCTOR_PASS, "", "the clock is synchronised");
}

static void check_watches(const struct doctor_patient *p, struct doctor_finding *f)
{
        CLEANUP(fclose_p) FILE *file = fopen("/proc/sys/fs/inotify/max_user_watches", "re");
        char line[32] = "";
        uint64_t most = 0;

        (void) p;
        if (file == NULL || fgets(line, sizeof(line), file) == NULL)
                return;
        line[strcspn(line, "\n")] = '\0';
        if (text_parse_uint64(line, &most) == 0 && most < WATCHES_MIN)
                doctor_found(f, DOCTOR_WARN, "sysctl fs.inotify.max_user_watches=65536",
                             "only %llu files can be watched", (unsigned long long) most);
        else
                doctor_found(f, DOCTOR_PASS, "", "%llu files can be watched", (unsigned long long) most);
}

static void check_memlock(const struct doctor_patient *p, struct doctor_finding *f)
{
        struct rlimit limit;

        (void) p;
        if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
            limit.rlim_cur < (rlim_t) 1 << 30)
                doctor_found(
                        f, DOCTOR_WARN, "LimitMEMLOCK=infinity for what trains over RDMA (InfiniBand, RoCE)",
                        "this user may lock %llu KiB of memory", (unsigned long long) limit.rlim_cur / 1024);
        else
                doctor_found(f, DOCTOR_PASS, "", "memory may be locked as RDMA wants it");
}

static void check_disk(const struct doctor_patient *p, struct doctor_finding *f)
{
        struct statvfs fs;

        (void) p;
        if (statvfs("/var/lib", &fs) < 0)
                return;
        if (fs.f_blocks > 0 && fs.f_bavail * 20 < fs.f_blocks)
                doctor_found(f, DOCTOR_WARN,
                             "make room: faults are remembered in /var/lib/remuda, pods need more",
                             "less than 5 %% of the disk of /var/lib is free");
        else
                doctor_found(f, DOCTOR_PASS, "", "there is room in /var/lib");
}

static void check_cgroups(const struct doctor_patient *p, struct doctor_finding *f)
{
        (void) p;
        if (access("/sys/fs/cgroup/cgroup.controllers", F_OK) < 0)
                doctor_found(f, DOCTOR_WARN,
                             "boot with systemd.unified_cgroup_hierarchy=1; Kubernetes leaves version 1",
                             "cgroups are of version 1");
        else
                doctor_found(f, DOCTOR_PASS, "", "cgroups are of version 2");
}

static bool is_socket(const char *directory, const char *name)
{
        struct stat st;
        char path[300];

        return text_format(path, sizeof(path), "%s/%s", directory, name) && stat(path, &st) == 0 &&
               S_ISSOCK(st.st_mode);
}

static void check_kubelet(const struct doctor_patient *p, struct doctor_finding *f)
{
        if (access(p->kubelet_dir, F_OK) < 0)
                doctor_found(f, DOCTOR_SKIP, "", "no kubelet on this machine (%s)", p->kubelet_dir);
        else if (!is_socket(p->kubelet_dir, "kubelet.sock"))
                doctor_found(f, DOCTOR_FAIL,
                             "start the kubelet; `journalctl -u kubelet` says why it is not there",
                             "%s has no kubelet.sock", p->kubelet_dir);
        else
                doctor_found(f, DOCTOR_PASS, "", "the kubelet's socket is there");
}

static void check_kubelet_dir(const struct doctor_patient *p, struct doctor_finding *f)
{
        if (access(p->kubelet_dir, F_OK) < 0)
                doctor_found(f, DOCTOR_SKIP, "", "no kubelet on this machine");
        else if (access(p->kubelet_dir, W_OK) < 0)
                doctor_found(f, DOCTOR_WARN,
                             "the agent must run as root (and the folder be mounted writable)",
                             "this user may not write into %s", p->kubelet_dir);
        else
                doctor_found(f, DOCTOR_PASS, "", "sockets can be made in %s", p->kubelet_dir);
}

static void check_pod_resources(const struct doctor_patient *p, struct doctor_finding *f)
{
        char path[300];

        if (access(p->kubelet_dir, F_OK) < 0)
                doctor_found(f, DOCTOR_SKIP, "", "no kubelet on this machine");
        else if (!text_format(path, sizeof(path), "%s/../pod-resources", p->kubelet_dir) ||
                 !is_socket(path, "kubelet.sock"))
                doctor_found(f, DOCTOR_WARN, "without it nobody knows which pod holds which device",
                             "the kubelet's pod-resources socket is not there");
        else
                doctor_found(f, DOCTOR_PASS, "", "the kubelet tells who holds what");
}

/* When the first certificate of a PEM file ends; 0 = not known. */
static time_t certificate_end(const char *path)
{
        gnutls_x509_crt_t *certificates = NULL;
        gnutls_datum_t bytes = { NULL, 0 };
        unsigned count = 0;
        time_t end = 0;

        if (gnutls_load_file(path, &bytes) < 0)
                return 0;
        if (gnutls_x509_crt_list_import2(&certificates, &count, &bytes, GNUTLS_X509_FMT_PEM, 0) >= 0 &&
            count > 0)
                end = gnutls_x509_crt_get_expiration_time(certificates[0]);
        for (unsigned i = 0; i < count; i++)
                gnutls_x509_crt_deinit(certificates[i]);
        gnutls_free(certificates);
        gnutls_free(bytes.data);
        return end;
}

static void check_certificates(const struct doctor_patient *p, struct doctor_finding *f)
{
        DIR *dir = opendir(KUBELET_PKI);
        time_t now = (time_t) (clock_realtime_usec() / 1000000);
        unsigned n = 0;

        (void) p;
        if (dir == NULL) {
                doctor_found(f, DOCTOR_SKIP, "",
                             "no kubelet certificates that this user may read (" KUBELET_PKI ")");
                return;
        }
        for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
                char path[400];
                time_t end;

                if (!text_ends_with(e->d_name, ".crt") && !text_ends_with(e->d_name, ".pem"))
                        continue;
                (void) text_format(path, sizeof(path), "%s/%s", KUBELET_PKI, e->d_name);
                end = certificate_end(path);
                n += end != 0;
                if (end != 0 && end < now)
                        doctor_found(f, DOCTOR_FAIL, "approve its renewal (kubectl get csr), or rotate it",
                                     "%s has expired", path);
                else if (end != 0 && end < now + WEEK_SEC)
                        doctor_found(f, DOCTOR_WARN, "see that its renewal is approved (kubectl get csr)",
                                     "%s expires in %ld days", path, (long) ((end - now) / 86400));
        }
        (void) closedir(dir);
        doctor_found(f, DOCTOR_PASS, "", "%u certificates of the kubelet, none about to expire", n);
}

const struct doctor_check doctor_checks_system[] = {
        { "permissions", true, check_permissions },
        { "kernel log", true, check_kernel_log },
        { "clock", true, check_clock },
        { "file watches", true, check_watches },
        { "locked memory", true, check_memlock },
        { "disk", true, check_disk },
        { "cgroups", true, check_cgroups },
        { "kubelet", true, check_kubelet },
        { "kubelet folder", true, check_kubelet_dir },
        { "pod resources", true, check_pod_resources },
        { "certificates", true, check_certificates },
        { NULL, false, NULL },
};
