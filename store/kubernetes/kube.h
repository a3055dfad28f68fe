/* Kube: the client of calls to a Kubernetes API server: credentials that are read again as they rotate, one
 * more try after a 401, waiting when the server says so (429, 503 with Retry-After). On the program's loop,
 * asynchronous.
 *
 * A call ends with exactly one done(), from the loop, or with none when it is cancelled. */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "io/http/http_client.h"

struct kube_client;
struct kube_call;

struct kube_request {
        const char *method, *path; /* path with query; names in it must have passed kube_name_is_safe() */
        const char *content_type;  /* NULL = application/json */
        const json_t *body;        /* or NULL */
        size_t reply_max_bytes;    /* a larger one is -E2BIG; 0 = the client's own */
        uint64_t timeout_usec;     /* of one try; 0 = none */
        uint64_t deadline_usec;    /* of all tries together; 0 = as timeout_usec */
        bool (*may_send)(void *userdata); /* this and the next three as of http_call_options */
        void (*began)(void *userdata, unsigned status);
        bool (*chunk)(void *userdata, const char *bytes, size_t size_bytes);
        void (*done)(void *userdata, const struct http_call_result *result);
        void *userdata;
};

/* kube_client_new() - @kubeconfig: as kubeconfig_load(). */
int kube_client_new(sd_event *loop, const char *kubeconfig, struct kube_client **ret, struct err *err);
void kube_client_free(
        struct kube_client *client); /* running calls are done() with -ECANCELED; accepts NULL */

const char *kube_client_server(const struct kube_client *client); /* its URL */
const char *kube_client_namespace(const struct kube_client *client);
const char *kube_client_token(const struct kube_client *client); /* or NULL; borrowed until the next call */

/* kube_client_socket() - a WebSocket to the API server, as http_socket_open(); authorization is the
 * client's. */
struct http_socket;
struct http_socket_options;
struct http_socket_refusal;
int kube_client_socket(struct kube_client *client, const struct http_socket_options *options,
                       struct http_socket **ret, struct http_socket_refusal *refusal);

/* kube_call_start() - Return: 0; -ENOMEM. @ret may be NULL. */
int kube_call_start(struct kube_client *client, const struct kube_request *request, struct kube_call **ret);
void kube_call_cancel(struct kube_call *call); /* not from its own callbacks; accepts NULL */

/* kube_result() - what a reply means: 0 for 2xx; -EINVAL 400 and 422, -EACCES 401, -EPERM 403, -ENOENT 404,
 * -EEXIST 409 AlreadyExists, -ESTALE other 409 and 410, -EBUSY 429, -EIO the rest; the call's own error when
 * there was no reply. @sentence says it in words (the server's, where it sent some). */
int kube_result(const struct http_call_result *result, char *sentence, size_t sentence_bytes);

/* kube_name_is_safe() - lower case letters, digits, '-' and '.': what may stand in a path as it is. */
bool kube_name_is_safe(const char *name);
