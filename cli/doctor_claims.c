/* remuda doctor: what claims of Dynamic Resource Allocation need on a node that has our driver: a runtime
 * that reads CDI, a folder for it, and nobody else who offers the same chips. */
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/configuration.h"
#include "agent/vendor/vendor.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/bundle/bundle_child.h"
#include "cli/doctor.h"
#include "cli/doctor/containerd_config.h"
#include "io/read_file.h"
#include "io/stale_socket.h"

#define CONTAINERD_CONFIG  "/etc/containerd/config.toml"
#define CONTAINERD_IMPORTS "/etc/containerd/conf.d/*.toml"
#define FILE_BYTES         ((size_t) 64 << 20)
#define PATH_BYTES         200

/* Has an agent ever served claims here? */
static bool is_used(const struct doctor_patient *p)
{
        char path[300];

        return text_format(path, sizeof(path), "%s/../plugins/remuda.dev", p->kubelet_dir) &&
               access(path, F_OK) == 0;
}

/* Where the agent writes the CDI specs of claims, as far as that can be known from here. */
static bool claims_folder(const struct doctor_patient *p, char ret[PATH_BYTES], struct doctor_finding *f)
{
        const struct agent_options options = { .config = p->config };
        CLEANUP(configuration_free) struct configuration configuration = { .plugin = NULL };
        struct plugin_config usual;

        plugin_config_default(&usual);
        (void) configuration_load(&options, &configuration, NULL);
        if (text_copy(ret, PATH_BYTES,
                      plugin_config_claims_folder(
                              configuration.plugin != NULL ? configuration.plugin : &usual, p->cdi_dir)))
                return true;
        doctor_found(f, DOCTOR_FAIL, "name one by a shorter path",
                     "the folder of CDI specs, %.100s..., is too long", ret);
        return false;
}

/* Does our agent offer by claims alone? It says so itself, or its configuration does. */
static bool offers_claims_alone(const struct doctor_patient *p)
{
        const struct agent_options options = { .config = p->config };
        CLEANUP(configuration_free) struct configuration configuration = { .plugin = NULL };
        double value;

        if (p->metrics != NULL)
                return agent_client_metric(p->metrics, "remuda_agent_driver_registered", NULL, &value) &&
                       !agent_client_metric(p->metrics, "remuda_agent_kubelet_registered", NULL, &value);
        return configuration_load(&options, &configuration, NULL) == 0 &&
               !plugin_config_offers_plugin(configuration.plugin);
}

/* "containerd github.com/containerd/containerd v1.7.24 88bf19b" as major * 1000 + minor: 1007; 0 = it says
 * something else. */
static unsigned version_in(const char *said)
{
        const char *at = said;
        char *rest;
        unsigned long major;

        for (unsigned word = 0; word < 2; word++) {
                at += strcspn(at, " ");
                at += strspn(at, " ");
        }
        major = strtoul(at + (*at == 'v'), &rest, 10);
        return rest[0] == '.' && major < 1000 ? (unsigned) (major * 1000 + strtoul(rest + 1, NULL, 10) % 1000)
                                              : 0;
}

/* Of the containerd that is installed here; 0 = none, or it does not say. */
static unsigned containerd_version(void)
{
        static const char *const words[] = { "containerd", "--version", NULL };
        CLEANUP(text_free) struct text said = { 0 };
        struct bundle_child child;
        char errors[100];

        bundle_child_start(&child, words, 1000);
        return bundle_child_end(&child, &said, errors, sizeof(errors), NULL) == 0 && said.data != NULL
                       ? version_in(said.data)
                       : 0;
}

/* Files that containerd's own names, each read after it. */
static void add_imports(struct text *config)
{
        glob_t found = { 0 };

        if (glob(CONTAINERD_IMPORTS, 0, NULL, &found) == 0)
                for (size_t i = 0; i < found.gl_pathc; i++) {
                        CLEANUP(free_p) char *more = NULL;

                        if (read_file(found.gl_pathv[i], FILE_BYTES, &more, NULL, NULL) == 0)
                                text_printf(config, "\n[]\n%s", more);
                }
        globfree(&found);
}

/* Return: containerd's configuration, "" = there is none. */
static void read_config(struct text *ret)
{
        CLEANUP(free_p) char *own = NULL;

        if (read_file(CONTAINERD_CONFIG, FILE_BYTES, &own, NULL, NULL) == 0) {
                text_append(ret, own);
                if (strstr(own, "conf.d") != NULL)
                        add_imports(ret);
        }
        if (ret->data == NULL)
                text_append(ret, "");
}

/* What its configuration says of CDI; where it says nothing 1.7 reads none, and 2.0 does. */
static void check_config(const struct doctor_patient *p, unsigned version, struct doctor_finding *f)
{
        char folder[PATH_BYTES];
        CLEANUP(text_free) struct text config = { 0 };
        enum containerd_config_cdi cdi;
        unsigned major = version / 1000, minor = version % 1000;

        if (!claims_folder(p, folder, f))
                return;
        read_config(&config);
        if (config.failed)
                return;
        cdi = containerd_config_cdi(config.data);
        if (cdi == CONTAINERD_CONFIG_OFF || (cdi == CONTAINERD_CONFIG_UNSAID && version < 2000))
                doctor_found(f, DOCTOR_FAIL,
                             version < 2000 ? "enable_cdi = true under "
                                              "[plugins.\"io.containerd.grpc.v1.cri\"], and restart it"
                                            : "enable_cdi = true under "
                                              "[plugins.'io.containerd.cri.v1.runtime'], and restart it",
                             "containerd %u.%u reads CDI where " CONTAINERD_CONFIG " says so, and it %s",
                             major, minor, cdi == CONTAINERD_CONFIG_OFF ? "says not to" : "does not");
        else if (!containerd_config_reads(config.data, folder))
                doctor_found(f, DOCTOR_FAIL,
                             "name it in cdi_spec_dirs of " CONTAINERD_CONFIG ", and restart containerd",
                             "containerd %u.%u does not read %s: its cdi_spec_dirs are others", major, minor,
                             folder);
        else
                doctor_found(f, DOCTOR_PASS, "", "containerd %u.%u reads CDI", major, minor);
}

static void check_runtime(const struct doctor_patient *p, struct doctor_finding *f)
{
        unsigned version;

        if (!is_used(p)) {
                doctor_found(f, DOCTOR_SKIP, "", "no driver of claims has served on this machine");
                return;
        }
        version = containerd_version();
        if (version == 0)
                doctor_found(f, DOCTOR_SKIP, "",
                             "which containerd runs here is not known: `containerd --version` does not say");
        else if (version < 1007)
                doctor_found(f, DOCTOR_FAIL,
                             "install containerd 1.7 or later, or say `offer: plugin` on this node",
                             "containerd %u.%u ignores CDI: containers of claims start without their devices",
                             version / 1000, version % 1000);
        else
                check_config(p, version, f);
}

/* Is the nearest folder above it that is there writable? */
static bool can_be_made(const char *folder)
{
        char above[PATH_BYTES];
        char *slash;
        int r = -1;

        errno = ENOENT;
        for (bool fits = text_copy(above, sizeof(above), folder); fits && r < 0 && errno == ENOENT;
             r = access(above, W_OK)) {
                slash = strrchr(above, '/');
                if (slash == NULL || slash == above)
                        return access("/", W_OK) == 0;
                *slash = '\0';
        }
        return r == 0;
}

static void check_folder(const struct doctor_patient *p, struct doctor_finding *f)
{
        char folder[PATH_BYTES];

        if (!claims_folder(p, folder, f))
                return;
        if (!is_used(p))
                doctor_found(f, DOCTOR_SKIP, "", "no driver of claims has served on this machine");
        else if (access(folder, W_OK) == 0)
                doctor_found(f, DOCTOR_PASS, "", "CDI specs can be written into %s", folder);
        else if (errno == ENOENT && can_be_made(folder))
                doctor_found(f, DOCTOR_PASS, "", "CDI specs will be in %s, which the agent makes", folder);
        else
                doctor_found(f, DOCTOR_FAIL,
                             "make it, mount it writable into the agent's pod; or name another by --cdi-dir",
                             "CDI specs cannot be written into %s: %s", folder, strerrordesc_np(errno));
}

/* Is there a group of that resource on this machine? */
static bool is_ours(const struct doctor_patient *p, const char *resource)
{
        for (size_t i = 0; i < p->inventory->group_count; i++)
                if (strcmp(p->inventory->groups[i].resource, resource) == 0)
                        return true;
        return false;
}

/* Of a socket's name, "gpu.nvidia.com-reg.sock" or "project-hami.io-UID-reg.sock": whoever it is of is known
 * before one of its '-'. */
static bool driver_of(const char *socket, char *ret, size_t size_bytes)
{
        const char *whole = NULL;

        for (const char *end = strchr(socket, '-'); end != NULL; end = strchr(end + 1, '-'))
                if (text_format(ret, size_bytes, "%.*s", (int) (end - socket), socket) &&
                    vendor_of_claims(ret, &whole) != NULL)
                        return true;
        return false;
}

static bool is_served(const char *socket)
{
        struct stat st;

        return lstat(socket, &st) == 0 && S_ISSOCK(st.st_mode) && !stale_socket_is(socket);
}

/* A vendor's own driver of claims whose socket is served: its slices offer the same chips a second time. */
static void look_for_drivers(const struct doctor_patient *p, struct doctor_finding *f)
{
        char folder[300], path[600], name[300];
        const struct dirent *entry;
        DIR *open;

        open = text_format(folder, sizeof(folder), "%s/../plugins_registry", p->kubelet_dir) ? opendir(folder)
                                                                                             : NULL;
        while (open != NULL && (entry = readdir(open)) != NULL) {
                if (!driver_of(entry->d_name, name, sizeof(name)) ||
                    !text_format(path, sizeof(path), "%s/%s", folder, entry->d_name) || !is_served(path))
                        continue;
                doctor_found(f, DOCTOR_FAIL,
                             "take that driver away from this node; its attributes: plugin.selectorsOf",
                             "the driver %s serves claims beside remuda.dev: each chip is offered twice",
                             name);
        }
        if (open != NULL)
                (void) closedir(open);
}

/* Is a socket beside the kubelet's served that is not ours? */
static bool has_another_plugin(const struct doctor_patient *p)
{
        DIR *open = opendir(p->kubelet_dir);
        const struct dirent *entry;
        bool found = false;
        char path[600];

        while (open != NULL && !found && (entry = readdir(open)) != NULL)
                found = strcmp(entry->d_name, "kubelet.sock") != 0 &&
                        !text_starts_with(entry->d_name, "remuda-") &&
                        text_format(path, sizeof(path), "%s/%s", p->kubelet_dir, entry->d_name) &&
                        is_served(path);
        if (open != NULL)
                (void) closedir(open);
        return found;
}

/* The kubelet's own note of what device plugins offer: while ours offers nothing, another's; for some minutes
 * it names one that has gone, too. */
static void look_for_plugins(const struct doctor_patient *p, struct doctor_finding *f)
{
        CLEANUP(free_p) char *bytes = NULL;
        char path[300];
        const char *resource;
        json_t *note, *ids;

        if (!has_another_plugin(p) ||
            !text_format(path, sizeof(path), "%s/kubelet_internal_checkpoint", p->kubelet_dir) ||
            read_file(path, FILE_BYTES, &bytes, NULL, NULL) < 0)
                return;
        note = json_loads(bytes, 0, NULL);
        json_object_foreach(json_object_get(json_object_get(note, "Data"), "RegisteredDevices"), resource,
                            ids)
        {
                if (is_ours(p, resource) && json_array_size(ids) > 0)
                        doctor_found(
                                f, DOCTOR_FAIL,
                                "take the vendor's device plugin away from this node, or say `offer: both`",
                                "another device plugin offers %s (%zu devices), which claims of remuda.dev "
                                "have, too",
                                resource, json_array_size(ids));
        }
        json_decref(note);
}

static void check_others(const struct doctor_patient *p, struct doctor_finding *f)
{
        if (!is_used(p)) {
                doctor_found(f, DOCTOR_SKIP, "", "no driver of claims has served on this machine");
                return;
        }
        look_for_drivers(p, f);
        if (offers_claims_alone(p))
                look_for_plugins(p, f);
        doctor_found(f, DOCTOR_PASS, "", "nobody else offers this node's chips");
}

const struct doctor_check doctor_checks_claims[] = {
        { "claims: CDI", true, check_runtime },
        { "claims: CDI folder", true, check_folder },
        { "claims: others", true, check_others },
        { NULL, false, NULL },
};
