#include "agent/launch/door.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/http.h"
#include "agent/launch/caller.h"
#include "agent/launch/door_choice.h"
#include "agent/launch/door_order.h"
#include "agent/launch/door_programs.h"
#include "agent/launch/launches.h"
#include "agent/launch/program_file.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "io/http/http_server.h"
#include "io/loop.h"
#include "plugin/pod_resources.h"

#define POD_LOGS       "/var/log/pods"
#define BODY_MAX_BYTES 262144
#define WAITING_MAX    64
#define LOOK_USEC      UINT64_C(50000)
#define PATIENCE_USEC  UINT64_C(3000000) /* the launcher waits five seconds */

/* A pod that asks for a device which the kubelet has just given it: the kubelet is asked once more. */
struct waiting {
        struct door *door;
        struct http_pending *pending;
        struct caller caller;
        char runtime[PROGRAM_RUNTIME_BYTES], *list;
        uint64_t since_usec;
        sd_event_source *timer;
        struct waiting *next;
};

struct door {
        struct agent *agent;
        struct http_server *server;
        struct launches *launches;
        struct door_programs programs;
        struct waiting *waiting;
        size_t waiting_count;
};

void door_configure(struct door *d)
{
        const struct agent_options *options = d != NULL ? d->agent->options : NULL;

        if (d != NULL)
                door_programs_load(&d->programs,
                                   options->programs != NULL ? options->programs
                                                             : d->agent->config.programs_path,
                                   options->programs != NULL, &d->agent->log);
}

void door_fill(const struct door *d, struct inventory *inventory)
{
        if (d == NULL)
                return;
        door_programs_fill(&d->programs, inventory);
        for (size_t i = 0; i < inventory->device_count; i++) {
                const struct device *device = &inventory->devices[i];
                struct device_group *group = inventory_find_group(inventory, device->group);

                if (group != NULL && group->free > 0 && device->usable &&
                    launches_hold(d->launches, device->id))
                        group->free--;
        }
}

static void reply_json(struct http_reply *reply, unsigned status, json_t *object)
{
        reply->status = status;
        reply->body = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;
        reply->body_bytes = reply->body != NULL ? strlen(reply->body) : 0;
        json_decref(object);
        if (reply->body == NULL)
                http_reply_error(reply, 503, "no memory for the answer");
}

/* {"error": ..., "message": ...}: the launcher quotes the latter. It takes 403 for a no, 503 for "cannot
 * say". */
static void reply_refusal(struct http_reply *reply, int error, const char *sentence)
{
        unsigned status = error == -EACCES || error == -EPERM                             ? 403
                          : error == -ENOENT                                              ? 404
                          : error == -EBUSY || error == -EKEYREJECTED || error == -ENOSPC ? 409
                          : error == -ENOMEM || error == -ESRCH                           ? 503
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

static json_t *answer_of(struct door *d, const struct program *program, const struct door_choice *choice,
                         bool in_pod)
{
        json_t *args = json_array(), *allowed = json_array(), *devices = json_array();
        /* a pod has files of its own: there the table's word counts, and the launcher holds it to that */
        const char *sha256 = in_pod ? program->sha256 : door_programs_sha256(&d->programs, program->runtime);

        for (size_t i = 0; i < program->arg_count; i++)
                (void) json_array_append_new(args, json_string(program->args[i]));
        for (size_t i = 0; i < program->environment_count; i++)
                (void) json_array_append_new(allowed, json_string(program->environment[i]));
        for (size_t i = 0; i < choice->count; i++)
                (void) json_array_append_new(devices, json_string(choice->devices[i]->id));
        return json_pack("{s:s, s:s, s:o, s:o, s:o, s:s, s:o}", "runtime", program->runtime, "path",
                         program->path, "args", args, "environment", door_environment(choice, in_pod),
                         "allowedEnvironment", allowed, "sha256", sha256, "devices", devices);
}

/* --- GET /v1/launch ------------------------------------------------------------------------------------- */

static int identify_asker(const struct door *d, const struct http_request *request, struct caller *ret,
                          struct err *err)
{
        int r = identify(d, request, ret, err);

        if (r == 0 && !ret->trusted && ret->pod_uid[0] == '\0')
                r = err_set(err, -EACCES, "only pods, root and the group '%s' may ask",
                            d->agent->config.launch_group);
        if (r == 0 && ret->pod_uid[0] != '\0' && ret->pod[0] == '\0')
                r = err_set(err, -ESRCH, "the caller's pod %s is not known under %s", ret->pod_uid, POD_LOGS);
        return r;
}

static int answer_or_refuse(struct door *d, const struct caller *c, const char *runtime, const char *list,
                            json_t **ret, struct err *err)
{
        CLEANUP(free_p) struct door_choice *choice = calloc(1, sizeof(*choice));
        bool in_pod = c->pod_uid[0] != '\0';
        const struct program *program;
        int r;

        if (choice == NULL)
                return err_set(err, -ENOMEM, "no memory");
        r = door_choose_list(d->agent, c, runtime, list, choice, err);
        if (r < 0)
                return r;
        program = door_programs_find(&d->programs, runtime, err);
        if (program == NULL)
                return -ENOENT;
        r = in_pod ? 0 : door_programs_check(&d->programs, program, err);
        if (r == 0)
                *ret = answer_of(d, program, choice, in_pod);
        return r;
}

static void reply_launch(struct door *d, const char *runtime, int r, json_t *answer, const struct err *err,
                         struct http_reply *reply)
{
        door_programs_count(&d->programs, runtime, r == 0 ? DOOR_ANSWERED : DOOR_REFUSED);
        if (r < 0)
                reply_refusal(reply, r, err->msg);
        else
                reply_json(reply, 200, answer);
}

static void stop_waiting(struct waiting *w, struct http_reply *reply)
{
        struct waiting **at = &w->door->waiting;

        while (*at != w)
                at = &(*at)->next;
        *at = w->next;
        w->door->waiting_count--;
        (void) sd_event_source_unref(w->timer);
        http_resume(w->pending, reply);
        free(w->list);
        free(w);
}

/* Has the kubelet answered since, or will it not? */
static bool has_heard(const struct waiting *w)
{
        const struct agent *a = w->door->agent;
        const struct device_holder *holders;
        uint64_t asked_usec = 0;

        (void) pod_resources_holders(a->pods, &holders, &asked_usec);
        return asked_usec > w->since_usec || loop_now_usec(a->loop) >= w->since_usec + PATIENCE_USEC;
}

static void on_waited(void *userdata)
{
        struct waiting *w = userdata;
        struct http_reply reply = { 0 };
        struct err err = { 0 };
        json_t *answer = NULL;
        int r = answer_or_refuse(w->door, &w->caller, w->runtime, w->list, &answer, &err);

        w->timer = sd_event_source_unref(w->timer);
        if (r == -EACCES && !has_heard(w) &&
            loop_after(w->door->agent->loop, LOOK_USEC, on_waited, w, &w->timer) == 0)
                return;
        reply_launch(w->door, w->runtime, r, answer, &err, &reply);
        stop_waiting(w, &reply);
}

/* Return: is the request kept until the kubelet was asked once more? */
static bool wait_for_kubelet(struct door *d, const struct http_request *request, const struct caller *c,
                             const char *runtime, const char *list)
{
        struct waiting *w;

        if (d->agent->pods == NULL || c->pod_uid[0] == '\0' || d->waiting_count >= WAITING_MAX)
                return false;
        w = calloc(1, sizeof(*w));
        if (w == NULL)
                return false;
        *w = (struct waiting){ .door = d, .caller = *c, .list = strdup(list) };
        w->since_usec = loop_now_usec(d->agent->loop);
        if (w->list == NULL || !text_copy(w->runtime, sizeof(w->runtime), runtime) ||
            loop_after(d->agent->loop, LOOK_USEC, on_waited, w, &w->timer) < 0) {
                free(w->list);
                free(w);
                return false;
        }
        w->pending = http_suspend(request);
        w->next = d->waiting;
        d->waiting = w;
        d->waiting_count++;
        pod_resources_ask(d->agent->pods);
        return true;
}

static void get_launch(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        const char *runtime = http_request_query(request, "runtime");
        const char *list = http_request_query(request, "devices");
        struct door *d = userdata;
        struct err err = { 0 };
        struct caller c = { 0 };
        json_t *answer = NULL;
        int r;

        if (runtime == NULL || runtime[0] == '\0') {
                reply_refusal(reply, -EINVAL, "runtime is missing: /v1/launch?runtime=cuda&devices=ID,...");
                return;
        }
        list = list != NULL ? list : "";
        r = identify_asker(d, request, &c, &err);
        if (r == 0)
                r = answer_or_refuse(d, &c, runtime, list, &answer, &err);
        if (r != -EACCES || !wait_for_kubelet(d, request, &c, runtime, list))
                reply_launch(d, runtime, r, answer, &err, reply);
}

/* --- POST /v1/launch ------------------------------------------------------------------------------------ */

static int choose(struct door *d, const struct caller *c, const struct door_order *o, struct door_choice *ret,
                  struct err *err)
{
        int r = o->list.size_bytes > 0
                        ? door_choose_list(d->agent, c, o->runtime, o->list.data, ret, err)
                        : door_choose_free(d->agent, o->runtime, o->chips > 0 ? o->chips : 1, ret, err);

        for (size_t i = 0; r == 0 && i < ret->count; i++)
                if (!door_is_free(d->agent, ret->devices[i]))
                        r = err_set(err, -EBUSY, "device '%s' is not free", ret->devices[i]->id);
        return r;
}

static int post_launch_or_refuse(struct door *d, const struct http_request *request, struct door_order *o,
                                 json_t *body, json_t **ret, struct err *err)
{
        CLEANUP(free_p) struct door_choice *choice = calloc(1, sizeof(*choice));
        struct json_field root = json_field_root(body);
        const struct program *program = NULL;
        struct caller c = { 0 };
        unsigned id = 0;
        pid_t pid = 0;
        int r;

        if (choice == NULL)
                return err_set(err, -ENOMEM, "no memory");
        r = door_order_read(&root, o, err);
        if (r >= 0)
                r = identify_trusted(d, request, &c, err);
        if (r == 0 && (program = door_programs_find(&d->programs, o->runtime, err)) == NULL)
                r = -ENOENT;
        if (r == 0)
                r = door_programs_check(&d->programs, program, err);
        if (r == 0)
                r = choose(d, &c, o, choice, err);
        if (r == 0)
                r = door_order_start(o, &c, program, choice, d->launches, &id, &pid, err);
        if (r == 0) {
                *ret = answer_of(d, program, choice, false);
                (void) json_object_set_new(*ret, "id", json_integer(id));
                (void) json_object_set_new(*ret, "pid", json_integer(pid));
        }
        return r;
}

static void post_launch(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        json_t *body = json_loadb(request->body, request->body_bytes, JSON_REJECT_DUPLICATES, NULL),
               *answer = NULL;
        struct door *d = userdata;
        struct door_order o = { .chips = 0 };
        struct err err = { 0 };
        int r;

        if (body == NULL) {
                reply_refusal(reply, -EINVAL, "the body is not JSON: {\"runtime\": \"cuda\", \"chips\": 1}");
                return;
        }
        r = post_launch_or_refuse(d, request, &o, body, &answer, &err);
        door_programs_count(&d->programs, o.runtime, r == 0 ? DOOR_STARTED : DOOR_REFUSED);
        if (r < 0)
                reply_refusal(reply, r, err.msg);
        else
                reply_json(reply, 201, answer);
        text_free(&o.list);
        json_decref(body);
        if (r == 0)
                agent_scan(d->agent, "launch"); /* fewer are free */
}

/* --- the rest ------------------------------------------------------------------------------------------- */

static void on_ended(void *userdata, unsigned id, const char *runtime, bool well, const char *how)
{
        struct door *d = userdata;

        door_programs_count(&d->programs, runtime, well ? DOOR_FINISHED : DOOR_FAILED);
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

/* --- life ------------------------------------------------------------------------------------------------
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
        struct http_reply gone = { .status = 503 };

        if (d == NULL)
                return;
        while (d->waiting != NULL)
                stop_waiting(d->waiting, &gone);
        http_server_free(d->server);
        launches_free(d->launches);
        door_programs_free(&d->programs);
        free(d);
}

bool door_holds(const struct door *d, const char *device_id)
{
        return d != NULL && launches_hold(d->launches, device_id);
}

void door_metrics(const struct door *d, struct text *page)
{
        door_programs_metrics(d != NULL ? &d->programs : NULL, page);
}
