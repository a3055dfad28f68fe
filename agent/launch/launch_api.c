/* Launch API: who asks, what he may have, and the answer. */
#include "agent/launch/launch_api.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/launch/caller.h"
#include "agent/launch/launch_choice.h"
#include "agent/launch/launch_order.h"
#include "agent/launch/launch_programs.h"
#include "agent/launch/launches.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "io/http/http_server.h"
#include "io/loop.h"
#include "job/spec/job_role.h"

#define POD_LOGS       "/var/log/pods"
#define NOT_UTF8       "what is asked for is not valid UTF-8"
#define BODY_MAX_BYTES 262144
#define GUARD_USEC     UINT64_C(5000000) /* how often the socket is looked at */
#define WAITING_MAX    64
#define WAITING_OF_POD 4 /* of those */
#define LOOK_USEC      UINT64_C(50000)
#define PATIENCE_USEC  UINT64_C(3000000) /* the launcher waits five seconds */

/* A pod that asks for a device which the kubelet has just given it: the kubelet is asked once more. */
struct waiting {
        struct launch_api *api;
        struct http_pending *pending;
        struct caller caller;
        char runtime[JOB_RUNTIME_BYTES], *list;
        uint64_t since_usec;
        sd_event_source *timer;
        struct waiting *next;
};

struct launch_api {
        const struct services *services;
        const struct launch_api_options *options;
        struct http_server *server;
        sd_event_source *guard;
        struct launches *launches;
        struct waiting *waiting;
        size_t waiting_count;
};

void launch_api_fill(const struct launch_api *api, struct inventory *inventory)
{
        if (api == NULL)
                return;
        for (size_t i = 0; i < inventory->device_count; i++) {
                const struct device *device = &inventory->devices[i];
                struct device_group *group = inventory_find_group(inventory, device->group);

                if (group != NULL && group->free > 0 && device->usable &&
                    launches_hold(api->launches, device->id))
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

static const struct {
        int error;
        unsigned status;
} statuses[] = {
        { -EACCES, 403 }, { -EPERM, 403 },  { -ENOENT, 404 }, { -EBUSY, 409 },  { -EKEYREJECTED, 409 },
        { -ENOSPC, 409 }, { -ENOMEM, 503 }, { -ESRCH, 503 },  { -EAGAIN, 503 },
};

/* {"error": ..., "message": ...}: the launcher quotes the latter. It takes 403 for a no, 503 for "cannot
 * say". */
static void reply_refusal(struct http_reply *reply, int error, const char *sentence)
{
        unsigned status = 400;
        json_t *object = json_pack("{s:s, s:s}", "error", sentence, "message", sentence);

        for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
                if (statuses[i].error == error)
                        status = statuses[i].status;
        if (object == NULL) /* the sentence quotes bytes that are not UTF-8 */
                object = json_pack("{s:s, s:s}", "error", NOT_UTF8, "message", NOT_UTF8);
        reply_json(reply, status, object);
}

static int identify(const struct launch_api *api, const struct http_request *request, struct caller *ret,
                    struct err *err)
{
        const struct peer *peer = http_request_peer(request);

        if (peer == NULL)
                return err_set(err, -ESRCH, "the caller has ended, or the kernel does not say who it is");
        return caller_identify("/proc", POD_LOGS, peer, api->services->config->launch_group, ret, err);
}

static int identify_trusted(const struct launch_api *api, const struct http_request *request,
                            struct caller *ret, struct err *err)
{
        int r = identify(api, request, ret, err);

        if (r == 0 && !ret->trusted)
                r = err_set(err, -EACCES, "only root and the group '%s', outside any pod, may do this",
                            api->services->config->launch_group);
        return r;
}

static json_t *answer_of(struct launch_api *api, const struct program_table_row *program,
                         const struct launch_choice *choice, bool in_pod)
{
        json_t *args = json_array(), *allowed = json_array(), *devices = json_array();
        /* a pod has files of its own: there the table's word counts, and the launcher holds it to that */
        const char *sha256 =
                in_pod ? program->sha256 : launch_programs_sha256(api->options->programs, program->runtime);

        for (size_t i = 0; i < program->arg_count; i++)
                (void) json_array_append_new(args, json_string(program->args[i]));
        for (size_t i = 0; i < program->environment_count; i++)
                (void) json_array_append_new(allowed, json_string(program->environment[i]));
        for (size_t i = 0; i < choice->count; i++)
                (void) json_array_append_new(devices, json_string(choice->devices[i]->id));
        return json_pack("{s:s, s:s, s:o, s:o, s:o, s:b, s:s, s:o}", "runtime", program->runtime, "path",
                         program->path, "args", args, "environment",
                         launch_choice_environment(choice, in_pod), "allowedEnvironment", allowed, "inherit",
                         (int) program->inherits, "sha256", sha256, "devices", devices);
}

static int identify_asker(const struct launch_api *api, const struct http_request *request,
                          struct caller *ret, struct err *err)
{
        int r = identify(api, request, ret, err);

        if (r == 0 && !ret->trusted && ret->pod_uid[0] == '\0')
                r = err_set(err, -EACCES, "only pods, root and the group '%s' may ask",
                            api->services->config->launch_group);
        if (r == 0 && ret->pod_uid[0] != '\0' && ret->pod[0] == '\0')
                r = err_set(err, -ESRCH, "the caller's pod %s is not known under %s", ret->pod_uid, POD_LOGS);
        return r;
}

static int answer_or_refuse(struct launch_api *api, const struct caller *c, const char *runtime,
                            const char *list, json_t **ret, struct err *err)
{
        CLEANUP(free_p) struct launch_choice *choice = calloc(1, sizeof(*choice));
        bool in_pod = c->pod_uid[0] != '\0';
        const struct program_table_row *program;
        int r;

        if (choice == NULL)
                return err_set(err, -ENOMEM, "no memory");
        r = launch_choice_list(api->services, c, runtime, list, choice, err);
        if (r < 0)
                return r;
        program = launch_programs_find(api->options->programs, runtime, err);
        if (program == NULL)
                return -ENOENT;
        r = in_pod ? 0 : launch_programs_check(api->options->programs, program, err);
        if (r == 0)
                *ret = answer_of(api, program, choice, in_pod);
        return r;
}

static void reply_launch(struct launch_api *api, const char *runtime, int r, json_t *answer,
                         const struct err *err, struct http_reply *reply)
{
        launch_programs_count(api->options->programs, runtime,
                              r == 0 ? LAUNCH_PROGRAMS_ANSWERED : LAUNCH_PROGRAMS_REFUSED);
        if (r < 0)
                reply_refusal(reply, r, err->msg);
        else
                reply_json(reply, 200, answer);
}

static void stop_waiting(struct waiting *w, struct http_reply *reply)
{
        struct waiting **at = &w->api->waiting;

        while (*at != w)
                at = &(*at)->next;
        *at = w->next;
        w->api->waiting_count--;
        (void) sd_event_source_disable_unref(w->timer);
        http_resume(w->pending, reply);
        free(w->list);
        free(w);
}

/* Has the kubelet answered since, or will it not? */
static bool has_answer(const struct waiting *w)
{
        const struct services *services = w->api->services;
        const struct holder *holders;
        uint64_t asked_usec = 0;

        (void) services->holders(services->userdata, &holders, &asked_usec);
        return asked_usec > w->since_usec || loop_now_usec(services->loop) >= w->since_usec + PATIENCE_USEC;
}

static void on_waited(void *userdata)
{
        struct waiting *w = userdata;
        struct http_reply reply = { 0 };
        struct err err = { 0 };
        json_t *answer = NULL;
        int r = answer_or_refuse(w->api, &w->caller, w->runtime, w->list, &answer, &err);

        if (r == -EACCES && !has_answer(w)) {
                loop_rearm(w->timer, LOOK_USEC);
                return;
        }
        reply_launch(w->api, w->runtime, r, answer, &err, &reply);
        stop_waiting(w, &reply);
}

static bool has_room(const struct launch_api *api, const struct caller *c)
{
        size_t of_pod = 0;

        for (const struct waiting *w = api->waiting; w != NULL; w = w->next)
                of_pod += strcmp(w->caller.pod_uid, c->pod_uid) == 0;
        return of_pod < WAITING_OF_POD && api->waiting_count < WAITING_MAX;
}

/* The request is kept until the kubelet was asked once more. Return: 0; -EAGAIN (too many wait already, of
 * this pod or of all); -EACCES (nobody is asked who holds what, or it is no pod). */
static int wait_for_kubelet(struct launch_api *api, const struct http_request *request,
                            const struct caller *c, const char *runtime, const char *list, struct err *err)
{
        struct waiting *w;

        if (api->services->holders == NULL || c->pod_uid[0] == '\0')
                return -EACCES; /* as it is */
        w = has_room(api, c) ? calloc(1, sizeof(*w)) : NULL;
        if (w == NULL)
                return err_set(err, -EAGAIN, "too many requests wait for the kubelet; try again in a second");
        *w = (struct waiting){ .api = api, .caller = *c, .list = strdup(list) };
        w->since_usec = loop_now_usec(api->services->loop);
        if (w->list == NULL || !text_copy(w->runtime, sizeof(w->runtime), runtime) ||
            loop_timer(api->services->loop, on_waited, w, &w->timer) < 0 ||
            (w->pending = http_suspend(request)) == NULL) {
                (void) sd_event_source_disable_unref(w->timer);
                free(w->list);
                free(w);
                return err_set(err, -ENOMEM, "no memory");
        }
        loop_rearm(w->timer, LOOK_USEC);
        w->next = api->waiting;
        api->waiting = w;
        api->waiting_count++;
        api->services->ask_holders(api->services->userdata);
        return 0;
}

static void get_launch(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        const char *runtime = http_request_query(request, "runtime");
        const char *list = http_request_query(request, "devices");
        struct launch_api *api = userdata;
        struct err err = { 0 };
        struct caller c = { 0 };
        json_t *answer = NULL;
        int r;

        if (runtime == NULL || !job_role_runtime_valid(runtime)) {
                reply_refusal(
                        reply, -EINVAL,
                        "runtime is missing, or the name of none: /v1/launch?runtime=cuda&devices=ID,...");
                return;
        }
        list = list != NULL ? list : "";
        r = identify_asker(api, request, &c, &err);
        if (r == 0)
                r = answer_or_refuse(api, &c, runtime, list, &answer, &err);
        if (r == -EACCES && c.pod_uid[0] != '\0') {
                r = wait_for_kubelet(api, request, &c, runtime, list, &err);
                if (r == 0)
                        return;
                reply->retry_after_sec = r == -EAGAIN;
        }
        reply_launch(api, runtime, r, answer, &err, reply);
}

static int choose(struct launch_api *api, const struct caller *c, const struct launch_order *o,
                  struct launch_choice *ret, struct err *err)
{
        int r = o->list.size_bytes > 0
                        ? launch_choice_list(api->services, c, o->runtime, o->list.data, ret, err)
                        : launch_choice_any(api->services, api->launches, o->runtime,
                                            o->chips > 0 ? o->chips : 1, ret, err);

        for (size_t i = 0; r == 0 && i < ret->count; i++)
                if (!launch_choice_is_free(api->services, api->launches, ret->devices[i]))
                        r = err_set(err, -EBUSY, "device '%s' is not free", ret->devices[i]->id);
        return r;
}

static int post_launch_or_refuse(struct launch_api *api, const struct http_request *request,
                                 struct launch_order *o, json_t *body, json_t **ret, struct err *err)
{
        CLEANUP(free_p) struct launch_choice *choice = calloc(1, sizeof(*choice));
        struct json_field root = json_field_root(body);
        const struct program_table_row *program = NULL;
        struct caller c = { 0 };
        unsigned id = 0;
        pid_t pid = 0;
        int r;

        if (choice == NULL)
                return err_set(err, -ENOMEM, "no memory");
        r = launch_order_read(&root, o, err);
        if (r >= 0)
                r = identify_trusted(api, request, &c, err);
        if (r == 0 && (program = launch_programs_find(api->options->programs, o->runtime, err)) == NULL)
                r = -ENOENT;
        if (r == 0)
                r = launch_programs_check(api->options->programs, program, err);
        if (r == 0)
                r = choose(api, &c, o, choice, err);
        if (r == 0)
                r = launch_order_start(o, &c, program, choice, api->launches, &id, &pid, err);
        if (r == 0) {
                *ret = answer_of(api, program, choice, false);
                (void) json_object_set_new(*ret, "id", json_integer(id));
                (void) json_object_set_new(*ret, "pid", json_integer(pid));
        }
        return r;
}

static void post_launch(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        json_t *body = json_loadb(request->body, request->body_bytes, JSON_REJECT_DUPLICATES, NULL),
               *answer = NULL;
        struct launch_api *api = userdata;
        struct launch_order o = { .chips = 0 };
        struct err err = { 0 };
        int r;

        if (body == NULL) {
                reply_refusal(reply, -EINVAL, "the body is not JSON: {\"runtime\": \"cuda\", \"chips\": 1}");
                return;
        }
        r = post_launch_or_refuse(api, request, &o, body, &answer, &err);
        launch_programs_count(api->options->programs, o.runtime,
                              r == 0 ? LAUNCH_PROGRAMS_STARTED : LAUNCH_PROGRAMS_REFUSED);
        if (r < 0)
                reply_refusal(reply, r, err.msg);
        else
                reply_json(reply, 201, answer);
        text_free(&o.list);
        json_decref(body);
        if (r == 0)
                services_scan(api->services, "launch"); /* fewer are free */
}

static void on_ended(void *userdata, unsigned id, const char *runtime, bool well, const char *how)
{
        struct launch_api *api = userdata;

        launch_programs_count(api->options->programs, runtime,
                              well ? LAUNCH_PROGRAMS_FINISHED : LAUNCH_PROGRAMS_FAILED);
        log_line(api->services->log, well ? LOG_INFO : LOG_WARNING, "launch", "id=%u runtime=%s ended=\"%s\"",
                 id, runtime, how);
        services_scan(api->services, "launch");
}

static void get_launches(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        struct launch_api *api = userdata;
        struct caller c = { 0 };
        struct err err = { 0 };
        int r = identify_trusted(api, request, &c, &err);

        if (r < 0)
                reply_refusal(reply, r, err.msg);
        else
                reply_json(reply, 200, json_pack("{s:o}", "launches", launches_list(api->launches)));
}

static void post_stop(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        const char *id = http_request_query(request, "id");
        struct launch_api *api = userdata;
        struct caller c = { 0 };
        struct err err = { 0 };
        uint64_t number = 0;
        int r = identify_trusted(api, request, &c, &err);

        if (r == 0 && (id == NULL || text_parse_uint64(id, &number) < 0 || number > UINT32_MAX))
                r = err_set(&err, -EINVAL, "id is missing: /v1/launch/stop?id=1");
        if (r == 0) {
                r = launches_stop(api->launches, (unsigned) number, &c);
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
        struct launch_api *api = userdata;
        struct caller c = { 0 };
        struct err err = { 0 };
        int r = identify_trusted(api, request, &c, &err);

        if (r == 0 && id == NULL)
                r = err_set(&err, -EINVAL, "device is missing: /v1/health/clear?device=ID");
        if (r == 0) {
                r = api->options->clear(api->services->userdata, id);
                if (r < 0)
                        (void) err_set(&err, r, "no device '%s' on this node", id);
        }
        if (r < 0) {
                reply_refusal(reply, r, err.msg);
                return;
        }
        log_line(api->services->log, LOG_NOTICE, "clear", "device=%s uid=%u", id, (unsigned) c.uid);
        reply_json(reply, 200, json_pack("{s:s}", "cleared", id));
}

static void get_inventory(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        const struct launch_api *api = userdata;

        api->options->get_inventory(api->services->userdata, request, reply);
}

static void get_metrics(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        const struct launch_api *api = userdata;

        api->options->get_metrics(api->services->userdata, request, reply);
}

static const struct http_route routes[] = {
        { .method = "GET", .path = "/v1/launch", .handler = get_launch },
        { .method = "POST", .path = "/v1/launch", .handler = post_launch },
        { .method = "POST", .path = "/v1/launch/stop", .handler = post_stop },
        { .method = "GET", .path = "/v1/launches", .handler = get_launches },
        { .method = "POST", .path = "/v1/health/clear", .handler = post_clear },
        { .method = "GET", .path = "/v1/inventory", .handler = get_inventory, .shared = true },
        { .method = "GET", .path = "/metrics", .handler = get_metrics, .shared = true },
        { 0 },
};

static int listen_at(struct launch_api *api, const char *path, struct err *err)
{
        struct http_server_options options = { .unix_mode = 0666, /* who it is decides, not who may knock */
                                               .body_max_bytes = BODY_MAX_BYTES,
                                               .connections_max = 256,
                                               .connections_max_per_address = 32, /* of a container */
                                               .idle_timeout_sec = 30,
                                               .routes = routes,
                                               .userdata = api };
        char address[160];

        if (!text_format(address, sizeof(address), "unix:%s", path))
                return err_set(err, -ENAMETOOLONG, "'%.60s...' is longer than a socket's path may be", path);
        options.address = address;
        options.unix_take_over = true; /* an upgraded agent comes while the old one still serves */
        return http_server_new(api->services->loop, &options, &api->server, err);
}

static const char *socket_of(const struct launch_api *api)
{
        return api->options->socket != NULL ? api->options->socket : LAUNCH_API_SOCKET;
}

/* By a process of the host that this agent trusts: another agent. */
static bool is_served_by_host(const struct launch_api *api, const char *path)
{
        CLEANUP(close_p) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct caller c = { .trusted = false };
        struct peer peer;

        if (fd < 0 || !text_copy(address.sun_path, sizeof(address.sun_path), path) ||
            connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 || peer_open(fd, &peer) < 0)
                return false;
        (void) caller_identify("/proc", POD_LOGS, &peer, api->services->config->launch_group, &c, NULL);
        peer_close(&peer);
        return c.trusted;
}

/* Whoever may write to the socket's folder can put a socket of his own there, which the launchers of others
 * would believe: it is missed, said, and replaced. An agent that came after this one is no such case: it
 * stays. */
static void on_guard(void *userdata)
{
        struct launch_api *api = userdata;
        struct http_server *before = api->server;
        struct err err = { 0 };

        if (!http_server_is_reachable(before) && !is_served_by_host(api, socket_of(api))) {
                if (listen_at(api, socket_of(api), &err) == 0)
                        http_server_free(before);
                else
                        api->server = before;
                services_event(api->services, "Warning", "LaunchSocketReplaced", NULL,
                               "the launch door's socket %s was removed or replaced%s%s; mount its folder "
                               "read-only in pods",
                               socket_of(api),
                               err.code < 0 ? ", and cannot be made anew: " : ", and is made anew", err.msg);
        }
}

int launch_api_new(const struct services *services, const struct launch_api_options *options,
                   struct launch_api **ret, struct err *err)
{
        const char *path = options->socket;
        struct launch_api *api;
        int r;

        if (path != NULL && strcmp(path, "none") == 0)
                return 0;
        api = calloc(1, sizeof(*api));
        if (api == NULL)
                return err_set(err, -ENOMEM, "no memory for the launch API");
        api->services = services;
        api->options = options;
        r = launches_new(services->loop, on_ended, api, &api->launches, err);
        if (r == 0 && path == NULL)
                (void) mkdir("/run/remuda", 0755);
        if (r == 0)
                r = listen_at(api, socket_of(api), err);
        if (r == 0)
                r = loop_every(services->loop, GUARD_USEC, GUARD_USEC, on_guard, api, &api->guard);
        if (r < 0) {
                launch_api_free(api);
                if (path != NULL)
                        return err_wrap(err, r, "--launch-socket %s", path);
                log_line(services->log, LOG_WARNING, "door", "going_on=without error=\"%s\" path=%s",
                         err->msg, LAUNCH_API_SOCKET);
                return 0;
        }
        *ret = api;
        return 0;
}

void launch_api_free(struct launch_api *api)
{
        struct http_reply gone = { .status = 503 };

        if (api == NULL)
                return;
        while (api->waiting != NULL)
                stop_waiting(api->waiting, &gone);
        (void) sd_event_source_disable_unref(api->guard);
        http_server_free(api->server);
        launches_free(api->launches);
        free(api);
}

bool launch_api_holds(const struct launch_api *api, const char *device_id)
{
        return api != NULL && launches_hold(api->launches, device_id);
}
