#include "agent/door.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/caller.h"
#include "agent/http.h"
#include "agent/launches.h"
#include "codec/json_field.h"
#include "codec/metrics_text.h"
#include "core/cleanup.h"
#include "core/text.h"
#include "io/http_server.h"
#include "io/program_file.h"
#include "plugin/pod_resources.h"

#define POD_LOGS       "/var/log/pods"
#define VARIABLES_MAX  256
#define ARGUMENTS_MAX  (PROGRAM_ARGS_MAX + 256)
#define BODY_MAX_BYTES 262144

enum result { RESULT_ANSWERED, RESULT_REFUSED, RESULT_STARTED, RESULT_FINISHED, RESULT_FAILED, RESULT_COUNT };

static const char *const result_names[RESULT_COUNT] = { "answered", "refused", "started", "finished",
                                                        "failed" };

/* What is counted and hashed of one runtime's program. */
struct known {
        char runtime[16];
        char sha256[SHA256_HEX_BYTES];
        dev_t dev;
        ino_t ino;
        struct timespec mtime;
        uint64_t results[RESULT_COUNT];
};

struct door {
        struct agent *agent;
        struct http_server *server;
        struct launches *launches;
        struct program_table programs;
        struct known known[PROGRAM_TABLE_MAX + 1]; /* the last is for runtimes without a program */
        size_t known_count;
};

/* --- programs
 * --------------------------------------------------------------------------------------------------- */

static struct known *known_of(struct door *d, const char *runtime)
{
        for (size_t i = 0; i < d->known_count; i++)
                if (strcmp(d->known[i].runtime, runtime) == 0)
                        return &d->known[i];
        if (program_table_find(&d->programs, runtime) == NULL || d->known_count >= PROGRAM_TABLE_MAX)
                return &d->known[PROGRAM_TABLE_MAX];
        (void) text_copy(d->known[d->known_count].runtime, sizeof(d->known[0].runtime), runtime);
        return &d->known[d->known_count++];
}

static void count(struct door *d, const char *runtime, enum result result)
{
        known_of(d, runtime)->results[result]++;
}

/* The content's hash, read again only when the file is another one. */
static int check_program(struct door *d, const struct program *program, struct known *k, struct err *err)
{
        char sha256[SHA256_HEX_BYTES];
        struct stat st;
        int r;

        if (k->sha256[0] != '\0' && stat(program->path, &st) == 0 && st.st_dev == k->dev &&
            st.st_ino == k->ino && st.st_mtim.tv_sec == k->mtime.tv_sec &&
            st.st_mtim.tv_nsec == k->mtime.tv_nsec &&
            (program->sha256[0] == '\0' || strcmp(program->sha256, k->sha256) == 0))
                return 0;
        (void) d;
        k->sha256[0] = '\0';
        if (stat(program->path, &st) < 0)
                return err_set(err, -errno, "'%s': %m", program->path);
        r = program_file_check(program, sha256, err);
        if (r < 0)
                return r;
        (void) text_copy(k->sha256, sizeof(k->sha256), sha256);
        k->dev = st.st_dev;
        k->ino = st.st_ino;
        k->mtime = st.st_mtim;
        return 0;
}

void door_configure(struct door *d)
{
        struct agent *a = d != NULL ? d->agent : NULL;
        struct program_table table;
        struct err err = { 0 };
        const char *path;
        int r;

        if (d == NULL)
                return;
        path = a->options->programs != NULL ? a->options->programs : a->config.programs_path;
        r = program_file_load(path, &table, &err);
        if (r == -ENOENT && a->options->programs == NULL) { /* no table is a normal state */
                program_table_free(&d->programs);
                d->programs = (struct program_table){ .count = 0 };
                return;
        }
        if (r < 0) {
                log_line(&a->log, LOG_ERR, "programs", "keeping=last error=\"%s\"", err.msg);
                return;
        }
        program_table_free(&d->programs);
        d->programs = table;
        for (size_t i = 0; i < table.count; i++) {
                const struct program *p = &table.programs[i];

                if (check_program(d, p, known_of(d, p->runtime), &err) < 0)
                        log_line(&a->log, LOG_WARNING, "programs", "runtime=%s error=\"%s\"", p->runtime,
                                 err.msg);
        }
}

void door_fill(const struct door *d, struct inventory *inventory)
{
        if (d == NULL)
                return;
        for (size_t i = 0; i < d->known_count && inventory->program_count < PROGRAMS_MAX; i++) {
                struct program_reference *p = &inventory->programs[inventory->program_count];

                if (d->known[i].sha256[0] == '\0' ||
                    program_table_find(&d->programs, d->known[i].runtime) == NULL)
                        continue;
                (void) text_copy(p->runtime, sizeof(p->runtime), d->known[i].runtime);
                (void) text_copy(p->sha256, sizeof(p->sha256), d->known[i].sha256);
                inventory->program_count++;
        }
        for (size_t i = 0; i < inventory->device_count; i++) {
                const struct device *device = &inventory->devices[i];
                struct device_group *group = inventory_find_group(inventory, device->group);

                if (group != NULL && group->free > 0 && device->usable &&
                    launches_hold(d->launches, device->id))
                        group->free--;
        }
}

/* --- who may have what
 * --------------------------------------------------------------------------------------------- */

struct chosen {
        const struct device *devices[DEVICES_MAX];
        size_t count;
};

static bool group_serves(const struct device_group *group, const char *runtime)
{
        if (strcmp(group->runtime, runtime) == 0)
                return true;
        return strcmp(group->runtime, "cpu") == 0 &&
               (strcmp(runtime, "opencl") == 0 || strcmp(runtime, "sunway") == 0);
}

static bool is_held_by(const struct agent *a, const char *id, const struct caller *c)
{
        const struct device_holder *holders = NULL;
        size_t n = a->pods != NULL ? pod_resources_holders(a->pods, &holders, NULL) : 0;

        for (size_t i = 0; i < n; i++)
                if (strcmp(holders[i].device_id, id) == 0 &&
                    (c == NULL || (strcmp(holders[i].pod_namespace, c->pod_namespace) == 0 &&
                                   strcmp(holders[i].pod, c->pod) == 0)))
                        return true;
        return false;
}

static int choose_one(const struct door *d, const struct caller *c, const char *runtime, const char *id,
                      struct chosen *ret, struct err *err)
{
        const struct agent *a = d->agent;
        const struct device *device = inventory_find_device(&a->told, id);
        const struct device_group *group;

        if (device == NULL)
                return err_set(err, -ENOENT, "no device '%s' on this node", id);
        if (!c->trusted && !is_held_by(a, id, c))
                return err_set(err, -EACCES, "device '%s' is not held by the caller's pod", id);
        group = inventory_find_group(&a->told, device->group);
        if (group == NULL || !group_serves(group, runtime))
                return err_set(err, -EINVAL, "device '%s' does not run '%s'; its runtime is '%s'", id,
                               runtime, group != NULL ? group->runtime : "none");
        for (size_t i = 0; i < ret->count; i++)
                if (ret->devices[i] == device)
                        return 0; /* two replicas of one device */
        ret->devices[ret->count++] = device;
        return 0;
}

/* "ID,ID::1,..." */
static int choose_list(const struct door *d, const struct caller *c, const char *runtime, const char *list,
                       struct chosen *ret, struct err *err)
{
        char id[DEVICE_ID_BYTES];

        while (*list != '\0') {
                size_t n = strcspn(list, ",");
                char *replica;
                int r;

                if (n >= sizeof(id) || ret->count >= DEVICES_MAX)
                        return err_set(err, -EINVAL, "'%.20s...' is no device's id", list);
                memcpy(id, list, n);
                id[n] = '\0';
                replica = strstr(id, "::");
                if (replica != NULL)
                        *replica = '\0';
                if (id[0] != '\0' && (r = choose_one(d, c, runtime, id, ret, err)) < 0)
                        return r;
                list += n + (list[n] == ',');
        }
        return 0;
}

static bool is_free(const struct door *d, const struct device *device)
{
        return device->usable && !launches_hold(d->launches, device->id) &&
               !is_held_by(d->agent, device->id, NULL);
}

static int choose_free(const struct door *d, const char *runtime, unsigned count_, struct chosen *ret,
                       struct err *err)
{
        const struct inventory *told = &d->agent->told;

        for (size_t i = 0; i < told->device_count && ret->count < count_; i++) {
                const struct device_group *group = inventory_find_group(told, told->devices[i].group);

                if (group != NULL && group_serves(group, runtime) && is_free(d, &told->devices[i]))
                        ret->devices[ret->count++] = &told->devices[i];
        }
        if (ret->count < count_)
                return err_set(err, -EBUSY, "%u devices of runtime '%s' are asked for, %zu are free", count_,
                               runtime, ret->count);
        return 0;
}

/* --- the environment that goes with devices
 * ------------------------------------------------------------------------ */

/* How each runtime's programs are told their devices. A pod's numbers are its own: there only ids are told.
 */
/* clang-format off */
static const struct {
        const char *vendor, *variable;
        bool by_id; /* the vendor's programs know devices by the id we use */
} visible[] = {
        { "nvidia",    "CUDA_VISIBLE_DEVICES",      true  },
        { "amd",       "ROCR_VISIBLE_DEVICES",      true  },
        { "hygon",     "HIP_VISIBLE_DEVICES",       false },
        { "huawei",    "ASCEND_RT_VISIBLE_DEVICES", false },
        { "cambricon", "MLU_VISIBLE_DEVICES",       false },
        { "mthreads",  "MUSA_VISIBLE_DEVICES",      false },
        { "metax",     "CUDA_VISIBLE_DEVICES",      false },
        { "iluvatar",  "CUDA_VISIBLE_DEVICES",      false },
        { "enflame",   "TOPS_VISIBLE_DEVICES",      false },
        { "kunlunxin", "XPU_VISIBLE_DEVICES",       false },
        { "intel",     "ZE_AFFINITY_MASK",          false },
        { "google",    "TPU_VISIBLE_CHIPS",         false },
        { "tenstorrent", "TT_VISIBLE_DEVICES",      false },
};
/* clang-format on */

static void append_visible(json_t *environment, const struct chosen *chosen, bool in_pod)
{
        const char *vendor = chosen->devices[0]->vendor;

        for (size_t v = 0; v < ARRAY_SIZE(visible); v++) {
                struct text value = { 0 };
                bool by_id = visible[v].by_id && chosen->devices[0]->partition[0] == '\0' &&
                             text_starts_with(chosen->devices[0]->id, "GPU-");
                char *taken;

                if (strcmp(visible[v].vendor, vendor) != 0 || (in_pod && !by_id))
                        continue;
                for (size_t i = 0; i < chosen->count; i++)
                        if (by_id)
                                text_printf(&value, "%s%s", i > 0 ? "," : "", chosen->devices[i]->id);
                        else
                                text_printf(&value, "%s%u", i > 0 ? "," : "", chosen->devices[i]->index);
                taken = text_take(&value, NULL);
                (void) json_object_set_new(environment, visible[v].variable, json_string(taken));
                free(taken);
                break;
        }
}

static json_t *environment_of(const struct chosen *chosen, bool in_pod)
{
        json_t *environment = json_object();
        struct text ids = { 0 };
        char *taken;

        if (chosen->count == 0)
                return environment;
        for (size_t i = 0; i < chosen->count; i++)
                text_printf(&ids, "%s%s", i > 0 ? "," : "", chosen->devices[i]->id);
        taken = text_take(&ids, NULL);
        (void) json_object_set_new(environment, "REMUDA_VENDOR", json_string(chosen->devices[0]->vendor));
        (void) json_object_set_new(environment, "REMUDA_DEVICES", json_string(taken));
        free(taken);
        append_visible(environment, chosen, in_pod);
        return environment;
}

/* --- answers
 * ------------------------------------------------------------------------------------------------------- */

static void reply_json(struct http_reply *reply, unsigned status, json_t *object)
{
        reply->status = status;
        reply->body = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;
        reply->body_bytes = reply->body != NULL ? strlen(reply->body) : 0;
        json_decref(object);
        if (reply->body == NULL)
                http_reply_error(reply, 503, "no memory for the answer");
}

/* {"error": ..., "message": ...}: the launcher quotes the latter. */
static void reply_refusal(struct http_reply *reply, int error, const char *sentence)
{
        unsigned status = error == -EACCES || error == -EPERM                             ? 403
                          : error == -ENOENT                                              ? 404
                          : error == -EBUSY || error == -EKEYREJECTED || error == -ENOSPC ? 409
                          : error == -ENOMEM                                              ? 503
                                                                                          : 400;

        reply_json(reply, status, json_pack("{s:s, s:s}", "error", sentence, "message", sentence));
}

static int identify(const struct door *d, const struct http_request *request, struct caller *ret,
                    struct err *err)
{
        pid_t pid = 0;
        uid_t uid = 0;
        gid_t gid = 0;

        if (http_request_peer(request, &pid, &uid, &gid) < 0)
                return err_set(err, -EACCES, "the caller is not known");
        return caller_identify("/proc", POD_LOGS, pid, uid, gid, d->agent->config.launch_group, ret, err);
}

static int identify_trusted(const struct door *d, const struct http_request *request, struct caller *ret,
                            struct err *err)
{
        int r = identify(d, request, ret, err);

        if (r == 0 && !ret->trusted)
                r = err_set(err, -EACCES, "only root and the group '%s', outside any pod, may do this",
                            d->agent->config.launch_group);
        return r;
}

static int find_program(struct door *d, const char *runtime, const struct program **ret, struct err *err)
{
        *ret = program_table_find(&d->programs, runtime);
        if (*ret == NULL)
                return err_set(err, -ENOENT, "no program for runtime '%s' in the program table", runtime);
        return check_program(d, *ret, known_of(d, runtime), err);
}

static json_t *answer_of(struct door *d, const struct program *program, const struct chosen *chosen,
                         bool in_pod)
{
        json_t *args = json_array(), *allowed = json_array(), *devices = json_array();

        for (size_t i = 0; i < program->arg_count; i++)
                (void) json_array_append_new(args, json_string(program->args[i]));
        for (size_t i = 0; i < program->environment_count; i++)
                (void) json_array_append_new(allowed, json_string(program->environment[i]));
        for (size_t i = 0; i < chosen->count; i++)
                (void) json_array_append_new(devices, json_string(chosen->devices[i]->id));
        return json_pack("{s:s, s:s, s:o, s:o, s:o, s:s, s:o}", "runtime", program->runtime, "path",
                         program->path, "args", args, "environment", environment_of(chosen, in_pod),
                         "allowedEnvironment", allowed, "sha256", known_of(d, program->runtime)->sha256,
                         "devices", devices);
}

static int get_launch_or_refuse(struct door *d, const struct http_request *request, const char *runtime,
                                json_t **ret, struct err *err)
{
        const char *list = http_request_query(request, "devices");
        CLEANUP(free_p) struct chosen *chosen = calloc(1, sizeof(*chosen));
        const struct program *program;
        struct caller c = { 0 };
        int r;

        if (chosen == NULL)
                return err_set(err, -ENOMEM, "no memory");
        r = identify(d, request, &c, err);
        if (r == 0 && !c.trusted && c.pod_uid[0] == '\0')
                r = err_set(err, -EACCES, "only pods, root and the group '%s' may ask",
                            d->agent->config.launch_group);
        if (r == 0 && c.pod_uid[0] != '\0' && c.pod[0] == '\0')
                r = err_set(err, -EACCES, "the caller's pod %s is not known under %s", c.pod_uid, POD_LOGS);
        if (r == 0)
                r = choose_list(d, &c, runtime, list != NULL ? list : "", chosen, err);
        if (r == 0)
                r = find_program(d, runtime, &program, err);
        if (r == 0)
                *ret = answer_of(d, program, chosen, c.pod_uid[0] != '\0');
        return r;
}

static void get_launch(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        const char *runtime = http_request_query(request, "runtime");
        struct door *d = userdata;
        struct err err = { 0 };
        json_t *answer = NULL;
        int r;

        if (runtime == NULL || runtime[0] == '\0') {
                reply_refusal(reply, -EINVAL, "runtime is missing: /v1/launch?runtime=cuda&devices=ID,...");
                return;
        }
        r = get_launch_or_refuse(d, request, runtime, &answer, &err);
        count(d, runtime, r == 0 ? RESULT_ANSWERED : RESULT_REFUSED);
        if (r < 0)
                reply_refusal(reply, r, err.msg);
        else
                reply_json(reply, 200, answer);
}

/* --- starting
 * ------------------------------------------------------------------------------------------------------- */

struct order {
        char runtime[16];
        char directory[1024];
        unsigned chips;
        struct text list; /* ids with commas */
        struct json_field args, environment;
};

static int read_order(const struct json_field *root, struct order *o, struct err *err)
{
        static const char *const known[] = { "runtime",     "devices",   "chips", "args",
                                             "environment", "directory", NULL };
        struct json_field devices;
        int r;

        if ((r = json_field_is_object(root, err)) < 0 || (r = json_field_only(root, known, err)) < 0 ||
            (r = json_field_require(root, "runtime", err)) < 0 ||
            (r = json_field_text(root, "runtime", o->runtime, sizeof(o->runtime), err)) < 0 ||
            (r = json_field_text(root, "directory", o->directory, sizeof(o->directory), err)) < 0 ||
            (r = json_field_unsigned(root, "chips", 1, DEVICES_MAX, &o->chips, err)) < 0 ||
            (r = json_field_array(root, "args", 256, &o->args, err)) < 0 ||
            (r = json_field_array(root, "devices", DEVICES_MAX, &devices, err)) < 0 ||
            (r = json_field_object(root, "environment", &o->environment, err)) < 0)
                return r;
        for (size_t i = 0; i < json_field_count(&devices); i++) {
                struct json_field at = json_field_at(&devices, i);
                const char *id = json_string_value(at.value);

                if (id == NULL || id[0] == '\0' || strchr(id, ',') != NULL)
                        return json_field_error(&at, err, "must be a device's id");
                text_printf(&o->list, "%s%s", i > 0 ? "," : "", id);
        }
        for (size_t i = 0; i < json_field_count(&o->args); i++) {
                struct json_field at = json_field_at(&o->args, i);

                if (json_string_value(at.value) == NULL ||
                    strlen(json_string_value(at.value)) != json_string_length(at.value))
                        return json_field_error(&at, err, "must be a string");
        }
        return 0;
}

/* Only what the table lists, and our own words, pass from the order into the program's environment. */
static bool may_pass(const struct program *program, const char *name)
{
        if (text_starts_with(name, "REMUDA_"))
                return true;
        for (size_t i = 0; i < program->environment_count; i++)
                if (strcmp(program->environment[i], name) == 0)
                        return true;
        return false;
}

static int make_environment(const struct program *program, const struct order *o, const json_t *ours,
                            char *variables[], size_t max, struct err *err)
{
        const char *name;
        size_t n = 0;
        json_t *value;

        variables[n++] = strdup("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        json_object_foreach((json_t *) o->environment.value, name, value)
        {
                if (!json_is_string(value) || !may_pass(program, name))
                        return err_set(err, -EINVAL,
                                       "environment.%.60s: not a string that the program table lets through",
                                       name);
                if (n + 1 < max && asprintf(&variables[n], "%s=%s", name, json_string_value(value)) >= 0)
                        n++;
        }
        json_object_foreach((json_t *) ours, name, value)
        {
                if (n + 1 < max && asprintf(&variables[n], "%s=%s", name, json_string_value(value)) >= 0)
                        n++;
        }
        return 0;
}

static int start(struct door *d, const struct caller *c, const struct program *program, const struct order *o,
                 const struct chosen *chosen, json_t **ret, struct err *err)
{
        char *variables[VARIABLES_MAX] = { NULL }, *argv[ARGUMENTS_MAX + 2] = { NULL };
        CLEANUP(free_p) char(*ids)[DEVICE_ID_BYTES] = calloc(chosen->count + 1, sizeof(*ids));
        struct launch_request request = { .path = program->path,
                                          .argv = argv,
                                          .environment = variables,
                                          .directory = o->directory[0] != '\0' ? o->directory : NULL,
                                          .caller = c,
                                          .runtime = o->runtime,
                                          .device_count = chosen->count };
        json_t *ours = environment_of(chosen, false);
        unsigned id = 0;
        pid_t pid = 0;
        size_t n = 0;
        int r = ids != NULL ? 0 : err_set(err, -ENOMEM, "no memory");

        argv[n++] = program->path;
        for (size_t i = 0; i < program->arg_count; i++)
                argv[n++] = program->args[i];
        for (size_t i = 0; i < json_field_count(&o->args); i++)
                argv[n++] = (char *) json_string_value(json_array_get(o->args.value, i));
        for (size_t i = 0; r == 0 && i < chosen->count; i++)
                (void) text_copy(ids[i], sizeof(*ids), chosen->devices[i]->id);
        request.devices = (const char(*)[DEVICE_ID_BYTES]) ids;
        if (r == 0)
                r = make_environment(program, o, ours, variables, VARIABLES_MAX, err);
        if (r == 0)
                r = launches_start(d->launches, &request, &id, &pid, err);
        if (r == 0) {
                *ret = answer_of(d, program, chosen, false);
                (void) json_object_set_new(*ret, "id", json_integer(id));
                (void) json_object_set_new(*ret, "pid", json_integer(pid));
        }
        for (size_t i = 0; variables[i] != NULL; i++)
                free(variables[i]);
        json_decref(ours);
        return r;
}

static int post_launch_or_refuse(struct door *d, const struct http_request *request, struct order *o,
                                 json_t *body, json_t **ret, struct err *err)
{
        CLEANUP(free_p) struct chosen *chosen = calloc(1, sizeof(*chosen));
        struct json_field root = json_field_root(body);
        const struct program *program;
        struct caller c = { 0 };
        int r;

        if (chosen == NULL)
                return err_set(err, -ENOMEM, "no memory");
        r = read_order(&root, o, err);
        if (r >= 0)
                r = identify_trusted(d, request, &c, err);
        if (r == 0)
                r = find_program(d, o->runtime, &program, err);
        if (r == 0 && o->list.size_bytes > 0)
                r = choose_list(d, &c, o->runtime, o->list.data, chosen, err);
        else if (r == 0)
                r = choose_free(d, o->runtime, o->chips > 0 ? o->chips : 1, chosen, err);
        for (size_t i = 0; r == 0 && i < chosen->count; i++)
                if (!is_free(d, chosen->devices[i]))
                        r = err_set(err, -EBUSY, "device '%s' is not free", chosen->devices[i]->id);
        return r < 0 ? r : start(d, &c, program, o, chosen, ret, err);
}

static void post_launch(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        json_t *body = json_loadb(request->body, request->body_bytes, JSON_REJECT_DUPLICATES, NULL),
               *answer = NULL;
        struct door *d = userdata;
        struct order o = { .chips = 0 };
        struct err err = { 0 };
        int r;

        if (body == NULL) {
                reply_refusal(reply, -EINVAL, "the body is not JSON: {\"runtime\": \"cuda\", \"chips\": 1}");
                return;
        }
        r = post_launch_or_refuse(d, request, &o, body, &answer, &err);
        count(d, o.runtime, r == 0 ? RESULT_STARTED : RESULT_REFUSED);
        if (r < 0)
                reply_refusal(reply, r, err.msg);
        else
                reply_json(reply, 201, answer);
        text_free(&o.list);
        json_decref(body);
        if (r == 0)
                agent_scan(d->agent, "launch"); /* fewer are free */
}

static void on_ended(void *userdata, unsigned id, const char *runtime, bool well, const char *how)
{
        struct door *d = userdata;

        count(d, runtime, well ? RESULT_FINISHED : RESULT_FAILED);
        log_line(&d->agent->log, well ? LOG_INFO : LOG_WARNING, "launch", "id=%u runtime=%s ended=\"%s\"", id,
                 runtime, how);
        agent_scan(d->agent, "launch");
}

static void get_launches(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        struct door *d = userdata;
        struct caller c = { 0 };
        struct err err = { 0 };
        int r = identify_trusted(d, request, &c, &err);

        if (r < 0)
                reply_refusal(reply, r, err.msg);
        else
                reply_json(reply, 200, json_pack("{s:o}", "launches", launches_list(d->launches)));
}

static void post_stop(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        const char *id = http_request_query(request, "id");
        struct door *d = userdata;
        struct caller c = { 0 };
        struct err err = { 0 };
        uint64_t number = 0;
        int r = identify_trusted(d, request, &c, &err);

        if (r == 0 && (id == NULL || text_parse_uint64(id, &number) < 0 || number > UINT32_MAX))
                r = err_set(&err, -EINVAL, "id is missing: /v1/launch/stop?id=1");
        if (r == 0) {
                r = launches_stop(d->launches, (unsigned) number, &c);
                if (r < 0)
                        (void) err_set(&err, r, r == -ENOENT ? "no launch %s" : "launch %s is another user's",
                                       id);
        }
        if (r < 0)
                reply_refusal(reply, r, err.msg);
        else
                reply_json(reply, 200, json_pack("{s:I}", "stopping", (json_int_t) number));
}

static void post_clear(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        const char *id = http_request_query(request, "device");
        struct door *d = userdata;
        struct caller c = { 0 };
        struct err err = { 0 };
        int r = identify_trusted(d, request, &c, &err);

        if (r == 0 && id == NULL)
                r = err_set(&err, -EINVAL, "device is missing: /v1/health/clear?device=ID");
        if (r == 0) {
                r = agent_clear(d->agent, id);
                if (r < 0)
                        (void) err_set(&err, r, "no device '%s' on this node", id);
        }
        if (r < 0) {
                reply_refusal(reply, r, err.msg);
                return;
        }
        log_line(&d->agent->log, LOG_NOTICE, "clear", "device=%s uid=%u", id, (unsigned) c.uid);
        reply_json(reply, 200, json_pack("{s:s}", "cleared", id));
}

/* Handlers of http.c want the agent, those above the door. */
static void get_inventory(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        http_get_inventory(((struct door *) userdata)->agent, request, reply);
}

static void get_metrics(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        http_get_metrics(((struct door *) userdata)->agent, request, reply);
}

static const struct http_route routes[] = {
        { .method = "GET", .path = "/v1/launch", .handler = get_launch },
        { .method = "POST", .path = "/v1/launch", .handler = post_launch },
        { .method = "POST", .path = "/v1/launch/stop", .handler = post_stop },
        { .method = "GET", .path = "/v1/launches", .handler = get_launches },
        { .method = "POST", .path = "/v1/health/clear", .handler = post_clear },
        { .method = "GET", .path = "/v1/inventory", .handler = get_inventory },
        { .method = "GET", .path = "/metrics", .handler = get_metrics },
        { 0 },
};

/* --- life
 * -------------------------------------------------------------------------------------------------------------
 */

static int listen_at(struct door *d, const char *path, struct err *err)
{
        struct http_server_options options = { .unix_mode = 0666, /* who it is decides, not who may knock */
                                               .body_max_bytes = BODY_MAX_BYTES,
                                               .connections_max = 256,
                                               .idle_timeout_sec = 30,
                                               .routes = routes,
                                               .userdata = d };
        char address[160];

        if (!text_format(address, sizeof(address), "unix:%s", path))
                return err_set(err, -ENAMETOOLONG, "'%.60s...' is longer than a socket's path may be", path);
        options.address = address;
        options.unix_take_over = true; /* an upgraded agent comes while the old one still serves */
        return http_server_new(d->agent->loop, &options, &d->server, err);
}

int door_open(struct agent *a, struct err *err)
{
        const char *path = a->options->launch_socket;
        struct door *d;
        int r;

        if (path != NULL && strcmp(path, "none") == 0)
                return 0;
        d = calloc(1, sizeof(*d));
        if (d == NULL)
                return err_set(err, -ENOMEM, "no memory for the launch door");
        d->agent = a;
        r = launches_new(a->loop, on_ended, d, &d->launches, err);
        if (r == 0 && path == NULL)
                (void) mkdir("/run/remuda", 0755);
        if (r == 0)
                r = listen_at(d, path != NULL ? path : LAUNCH_SOCKET_PATH, err);
        if (r < 0) {
                door_free(d);
                if (path != NULL)
                        return err_wrap(err, r, "--launch-socket %s", path);
                log_line(&a->log, LOG_WARNING, "door", "going_on=without error=\"%s\" path=%s", err->msg,
                         LAUNCH_SOCKET_PATH);
                return 0;
        }
        a->door = d;
        door_configure(d);
        return 0;
}

void door_free(struct door *d)
{
        if (d == NULL)
                return;
        http_server_free(d->server);
        launches_free(d->launches);
        program_table_free(&d->programs);
        free(d);
}

bool door_holds(const struct door *d, const char *device_id)
{
        return d != NULL && launches_hold(d->launches, device_id);
}

void door_metrics(const struct door *d, struct text *page)
{
        metrics_family(page, "remuda_launches_total", METRIC_COUNTER,
                       "Questions and orders at the launch door, and how launched programs ended");
        for (size_t i = 0; d != NULL && i <= PROGRAM_TABLE_MAX; i++) {
                const struct known *k = &d->known[i];

                if (i >= d->known_count && i < PROGRAM_TABLE_MAX)
                        continue;
                for (int r = 0; r < RESULT_COUNT; r++)
                        metrics_sample_uint64(
                                page, "remuda_launches_total",
                                METRIC_LABELS({ "runtime", i < PROGRAM_TABLE_MAX ? k->runtime : "other" },
                                              { "result", result_names[r] }),
                                k->results[r]);
        }
}
