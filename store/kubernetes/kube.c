/* Calls over one HTTP client: a token that is refused is read again, a server that asks to wait is waited
 * for. */
#include "store/kubernetes/kube.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json/json_field.h"
#include "base/json/json_read.h"
#include "base/text.h"
#include "base/version.h"
#include "io/http/http_socket.h"
#include "io/loop.h"
#include "store/kubernetes/kubeconfig.h"

#define TOKEN_MAX_BYTES 65536
#define BEARER          "Bearer "
#define TOKEN_AGE_USEC                                                                                       \
        (60 * UINT64_C(1000000)) /* client-go's: how long a token is used without a look at its file */
#define WAIT_MAX_SEC 30
#define TRIES_MAX    10

struct kube_client {
        sd_event *loop;
        struct http_client *http;
        struct kubeconfig config;
        struct kube_call *calls;
        char *authorization; /* "Bearer ...", or NULL */
        uint64_t token_read_usec;
};

struct kube_call {
        struct kube_client *client;
        struct kube_call *previous, *next;
        struct http_call *http; /* NULL while it waits for the next try */
        sd_event_source *waiting;
        char *method, *path, *content_type, *body;
        size_t reply_max_bytes;
        uint64_t timeout_usec, end_usec; /* end: no more tries after it */
        bool (*may_send)(void *userdata);
        void (*began)(void *userdata, unsigned status);
        bool (*chunk)(void *userdata, const char *bytes, size_t size_bytes);
        void (*done)(void *userdata, const struct http_call_result *result);
        void *userdata;
        unsigned tries;
        bool renewed; /* the token was read again after a 401 */
};

static char *read_token(const char *path)
{
        CLEANUP(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC);
        CLEANUP(free_p) char *token = calloc(1, TOKEN_MAX_BYTES + 1);
        ssize_t n = fd >= 0 && token != NULL ? read(fd, token, TOKEN_MAX_BYTES) : -1;

        if (n <= 0)
                return NULL;
        token[strcspn(token, " \t\r\n")] = '\0';
        return token[0] != '\0' ? TAKE(token) : NULL;
}

static void set_token(struct kube_client *c, const char *token)
{
        struct text line = { 0 };

        text_printf(&line, BEARER "%s", token);
        if (line.failed)
                return;
        free(c->authorization);
        c->authorization = text_take(&line, NULL);
}

/* Tokens of pods rotate: the file is looked at once a minute, and after a 401. A file that cannot be read
 * just now leaves the token that we have. */
static void refresh_token(struct kube_client *c, bool now)
{
        uint64_t time = loop_now_usec(c->loop);
        CLEANUP(free_p) char *token = NULL;

        if (c->config.token_file == NULL ||
            (!now && c->authorization != NULL && time < c->token_read_usec + TOKEN_AGE_USEC))
                return;
        c->token_read_usec = time;
        token = read_token(c->config.token_file);
        if (token != NULL)
                set_token(c, token);
}

static void call_free(struct kube_call *call)
{
        if (call->previous != NULL)
                call->previous->next = call->next;
        else if (call->client->calls == call)
                call->client->calls = call->next;
        if (call->next != NULL)
                call->next->previous = call->previous;
        sd_event_source_disable_unref(call->waiting);
        free(call->method);
        free(call->path);
        free(call->content_type);
        free(call->body);
        free(call);
}

static void finish(struct kube_call *call, const struct http_call_result *result)
{
        call->done(call->userdata, result);
        call_free(call);
}

static int try(struct kube_call *call);

static void try_again(void *userdata)
{
        struct kube_call *call = userdata;

        call->waiting = sd_event_source_disable_unref(call->waiting);
        if (try(call) < 0)
                finish(call, &(struct http_call_result){
                                     .error = -ENOMEM, .sentence = "out of memory", .body = "" });
}

static bool wait_and_try(struct kube_call *call, uint64_t wait_usec)
{
        sd_event *loop = call->client->loop;

        if (call->tries >= TRIES_MAX || loop_now_usec(loop) + wait_usec > call->end_usec)
                return false;
        return loop_after(loop, wait_usec, try_again, call, &call->waiting) >= 0;
}

/* 429 and 503 with Retry-After were not acted upon: the server only asks for patience. An eviction's 429
 * without it is an answer (a disruption budget forbids). */
static bool asks_to_wait(const struct http_call_result *result)
{
        return result->error == 0 && (result->status == 429 || result->status == 503) &&
               result->retry_after_sec > 0 && result->retry_after_sec <= WAIT_MAX_SEC;
}

static void on_done(void *userdata, const struct http_call_result *result)
{
        struct kube_call *call = userdata;

        call->http = NULL;
        if (result->error == 0 && result->status == 401 && !call->renewed &&
            call->client->config.token_file != NULL) {
                call->renewed = true;
                refresh_token(call->client, true);
                if (wait_and_try(call, 0))
                        return;
        }
        if (asks_to_wait(result) && wait_and_try(call, result->retry_after_sec * UINT64_C(1000000)))
                return;
        finish(call, result);
}

static bool on_sending(void *userdata)
{
        struct kube_call *call = userdata;

        return call->may_send(call->userdata);
}

static void on_began(void *userdata, unsigned status)
{
        struct kube_call *call = userdata;

        call->began(call->userdata, status);
}

static bool on_chunk(void *userdata, const char *bytes, size_t size_bytes)
{
        struct kube_call *call = userdata;

        return call->chunk(call->userdata, bytes, size_bytes);
}

static int try(struct kube_call *call)
{
        struct http_call_options options = { .method = call->method,
                                             .path = call->path,
                                             .content_type = call->content_type,
                                             .body = call->body,
                                             .body_bytes = call->body != NULL ? strlen(call->body) : 0,
                                             .reply_max_bytes = call->reply_max_bytes,
                                             .timeout_usec = call->timeout_usec,
                                             .may_send = call->may_send != NULL ? on_sending : NULL,
                                             .began = call->began != NULL ? on_began : NULL,
                                             .chunk = call->chunk != NULL ? on_chunk : NULL,
                                             .done = on_done,
                                             .userdata = call };

        refresh_token(call->client, false);
        options.authorization = call->client->authorization;
        call->tries++;
        return http_call_start(call->client->http, &options, &call->http);
}

static bool copy(char **field, const char *value)
{
        *field = strdup(value);
        return *field != NULL;
}

int kube_call_start(struct kube_client *client, const struct kube_request *request, struct kube_call **ret)
{
        struct kube_call *call = calloc(1, sizeof(*call));
        uint64_t limit = request->deadline_usec != 0 ? request->deadline_usec : request->timeout_usec;
        bool whole;

        if (call == NULL)
                return -ENOMEM;
        call->client = client;
        call->may_send = request->may_send;
        call->began = request->began;
        call->chunk = request->chunk;
        call->done = request->done;
        call->userdata = request->userdata;
        call->reply_max_bytes = request->reply_max_bytes;
        call->timeout_usec = request->timeout_usec;
        call->end_usec = limit != 0 ? loop_now_usec(client->loop) + limit : UINT64_MAX / 2;
        call->next = client->calls;
        if (call->next != NULL)
                call->next->previous = call;
        client->calls = call;
        whole = copy(&call->method, request->method) && copy(&call->path, request->path) &&
                copy(&call->content_type,
                     request->content_type != NULL ? request->content_type : "application/json");
        if (whole && request->body != NULL) {
                call->body = json_dumps(request->body, JSON_COMPACT);
                whole = call->body != NULL;
        }
        if (!whole || try(call) < 0) {
                call_free(call);
                return -ENOMEM;
        }
        if (ret != NULL)
                *ret = call;
        return 0;
}

void kube_call_cancel(struct kube_call *call)
{
        if (call == NULL)
                return;
        http_call_cancel(call->http);
        call_free(call);
}

static int code_of(unsigned status, const char *reason)
{
        switch (status) {
        case 400:
        case 422:
                return -EINVAL;
        case 401:
                return -EACCES;
        case 403:
                return -EPERM;
        case 404:
                return -ENOENT;
        case 409:
                return strcmp(reason, "AlreadyExists") == 0 ? -EEXIST : -ESTALE;
        case 410:
                return -ESTALE;
        case 429:
                return -EBUSY;
        default:
                return -EIO;
        }
}

/* A refused eviction names its budget there; other refusals say all in their message. */
static const char *cause_of(unsigned status, const json_t *object)
{
        const json_t *causes = json_object_get(json_object_get(object, "details"), "causes");
        const char *cause = json_string_value(json_object_get(json_array_get(causes, 0), "message"));

        return status == 429 && cause != NULL ? cause : "";
}

int kube_result(const struct http_call_result *result, char *sentence, size_t sentence_bytes)
{
        const char *message = "", *reason = "", *cause;
        struct json_field root;
        json_t *status;
        int r;

        if (result->error != 0) {
                (void) text_copy(sentence, sentence_bytes, result->sentence);
                return result->error;
        }
        sentence[0] = '\0';
        if (result->status / 100 == 2)
                return 0;
        status = json_read(result->body, result->body_bytes, 0, NULL);
        root = json_field_root(status);
        (void) json_field_string(&root, "message", &message, NULL);
        (void) json_field_string(&root, "reason", &reason, NULL);
        r = code_of(result->status, reason);
        cause = cause_of(result->status, status);
        if (message[0] != '\0')
                (void) text_format(sentence, sentence_bytes, "%u: %s%s%s", result->status, message,
                                   cause[0] == '\0' ? "" : " ", cause);
        else
                (void) text_format(sentence, sentence_bytes, "the API server answered %u", result->status);
        json_decref(status);
        return r;
}

bool kube_name_is_safe(const char *name)
{
        return name[0] != '\0' && name[0] != '.' && strlen(name) <= 253 &&
               name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-")] == '\0';
}

static int connect_to(struct kube_client *c, struct err *err)
{
        const struct kubeconfig *k = &c->config;
        struct http_client_options options = { .base_url = k->server,
                                               .ca_file = k->ca_file,
                                               .ca_pem = k->ca_pem,
                                               .certificate_file = k->certificate_file,
                                               .certificate_pem = k->certificate_pem,
                                               .key_file = k->key_file,
                                               .key_pem = k->key_pem,
                                               .insecure = k->insecure,
                                               .tls_server_name = k->tls_server_name,
                                               .proxy = k->proxy,
                                               .user_agent = "remuda/" REMUDA_VERSION " (linux)" };

        if (k->token != NULL)
                set_token(c, k->token);
        refresh_token(c, true);
        return http_client_new(c->loop, &options, &c->http, err);
}

int kube_client_new(sd_event *loop, const char *kubeconfig, struct kube_client **ret, struct err *err)
{
        struct kube_client *c = calloc(1, sizeof(*c));
        int r;

        if (c == NULL)
                return err_set(err, -ENOMEM, "no memory for the API client");
        c->loop = sd_event_ref(loop);
        r = kubeconfig_load(kubeconfig, &c->config, err);
        if (r == 0)
                r = connect_to(c, err);
        if (r < 0) {
                kube_client_free(c);
                return r;
        }
        *ret = c;
        return 0;
}

void kube_client_free(struct kube_client *c)
{
        if (c == NULL)
                return;
        while (c->calls != NULL) {
                struct kube_call *call = c->calls;

                http_call_cancel(call->http);
                finish(call, &(struct http_call_result){
                                     .error = -ECANCELED, .sentence = "the store is closing", .body = "" });
        }
        http_client_free(c->http);
        kubeconfig_free(&c->config);
        free(c->authorization);
        sd_event_unref(c->loop);
        free(c);
}

int kube_client_socket(struct kube_client *client, const struct http_socket_options *options,
                       struct http_socket **ret, struct http_socket_refusal *refusal)
{
        struct http_socket_options ours = *options;

        refresh_token(client, false);
        ours.authorization = client->authorization;
        return http_socket_open(client->loop, client->http, &ours, ret, refusal);
}

const char *kube_client_token(const struct kube_client *client)
{
        return client->authorization == NULL ? NULL : client->authorization + strlen(BEARER);
}

const char *kube_client_server(const struct kube_client *client)
{
        return client->config.server;
}

const char *kube_client_namespace(const struct kube_client *client)
{
        return client->config.namespace_;
}
