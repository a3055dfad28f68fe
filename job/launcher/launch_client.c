/* A group asks the agent of its node for chips. */
#include "job/launcher/launch_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/vendor/vendor.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"

void launch_client_answer_free(struct launch_client_answer *answer)
{
        json_decref(answer->body);
        *answer = (struct launch_client_answer){ 0 };
}

static int connect_to(const char *path, struct err *err)
{
        const struct timeval timeout = { .tv_sec = LAUNCH_CLIENT_TIMEOUT_SECONDS };
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd;

        if (!text_copy(address.sun_path, sizeof(address.sun_path), path))
                return err_set(err, -ENAMETOOLONG, "socket '%.150s': longer than a socket's path may be",
                               path);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return err_set(err, -errno, "no socket: %m");
        (void) setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
        (void) setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
        if (connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0) {
                int r = err_set(err, -errno, "socket '%.150s': %m", path);

                (void) close(fd);
                return r;
        }
        return fd;
}

/* Whoever could replace the socket could answer in the agent's place. */
static int judge_peer(int fd, const char *path, struct err *err)
{
        char folder[sizeof(((struct sockaddr_un *) NULL)->sun_path)], *slash;
        struct ucred peer = { .uid = (uid_t) -1 };
        socklen_t size = sizeof(peer);

        (void) text_copy(folder, sizeof(folder), path);
        slash = strrchr(folder, '/');
        if (slash != NULL)
                slash[slash == folder] = '\0';
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ||
            (peer.uid != 0 && peer.uid != geteuid()))
                return err_set(err, -EPERM,
                               "socket '%.150s' is served by user %u, not by root: no agent of this node",
                               path, (unsigned) peer.uid);
        if (getenv("KUBERNETES_SERVICE_HOST") != NULL && slash != NULL && access(folder, W_OK) == 0)
                return err_set(
                        err, -EPERM,
                        "'%.150s' is mounted writable: any pod with such a mount could answer in the agent's "
                        "place; mount it with readOnly: true",
                        folder);
        return 0;
}

static int exchange(int fd, const struct text *request, struct text *answer)
{
        char buffer[8192];
        ssize_t size;

        if (send(fd, request->data, request->size_bytes, MSG_NOSIGNAL) != (ssize_t) request->size_bytes)
                return -EIO;
        while ((size = recv(fd, buffer, sizeof(buffer), 0)) != 0) {
                if (size < 0)
                        return errno == EAGAIN ? -ETIMEDOUT : -errno;
                text_append_bytes(answer, buffer, (size_t) size);
                if (answer->failed)
                        return -EPROTO;
        }
        return 0;
}

/* All that agents have ever set (agent/launch/launch_choice.c). What else there is to set would be another's
 * wish, and cannot be listed: every library has variables of its own that bring code into a program. */
static bool is_an_agents(const char *name)
{
        return strcmp(name, "REMUDA_VENDOR") == 0 || strcmp(name, "REMUDA_DEVICES") == 0 ||
               vendor_is_variable(name);
}

static int take_variables(struct launch_client_answer *answer, struct err *err)
{
        const json_t *variables = json_object_get(answer->body, "variables");
        const char *name;
        json_t *value;

        if (variables == NULL)
                variables = json_object_get(answer->body, "environment");
        if (!json_is_object(variables) || json_object_size(variables) > LAUNCH_CLIENT_VARIABLES_MAX)
                return err_set(err, -EPROTO, "an answer without variables");
        json_object_foreach((json_t *) variables, name, value)
        {
                if (!json_is_string(value) || name[0] == '\0' || strchr(name, '=') != NULL)
                        return err_set(err, -EPROTO, "an answer with a variable that is none");
                if (!is_an_agents(name))
                        return err_set(err, -EPERM,
                                       "an answer that sets %.60s, which no agent does: not believed", name);
                answer->names[answer->variable_count] = name;
                answer->values[answer->variable_count++] = json_string_value(value);
        }
        return 0;
}

int launch_client_parse(const char *bytes, size_t size_bytes, struct launch_client_answer *ret,
                        struct err *err)
{
        const char *body = memmem(bytes, size_bytes, "\r\n\r\n", 4);
        const char *message, *retry = NULL;
        int r = -EPROTO;

        *ret = (struct launch_client_answer){ 0 };
        if (body == NULL || size_bytes < 12 || memcmp(bytes, "HTTP/1.", 7) != 0)
                return err_set(err, -EPROTO, "an answer that is not HTTP");
        body += 4;
        ret->body = json_loadb(body, size_bytes - (size_t) (body - bytes), JSON_REJECT_DUPLICATES, NULL);
        if (memcmp(bytes + 9, "200", 3) != 0) {
                message = json_string_value(json_object_get(ret->body, "message"));
                r = memcmp(bytes + 9, "403", 3) == 0 ? -EKEYREJECTED : -EPROTO;
                retry = memcmp(bytes + 9, "503", 3) == 0
                                ? memmem(bytes, (size_t) (body - bytes), "\r\nRetry-After: ", 15)
                                : NULL;
                err_set(err, r, "HTTP status %.3s: %.200s", bytes + 9,
                        message == NULL ? "no message" : message);
        } else {
                r = take_variables(ret, err);
                if (r == 0)
                        return 0;
        }
        launch_client_answer_free(ret);
        ret->retry_after_sec =
                retry != NULL ? (unsigned) strtoul(retry + strlen("\r\nRetry-After: "), NULL, 10) : 0;
        return r;
}

static int ask_once(const char *socket_path, const struct text *request, struct launch_client_answer *ret,
                    struct err *err)
{
        struct text answer = { .max_bytes = LAUNCH_CLIENT_ANSWER_MAX_BYTES };
        CLEANUP(close_p) int fd = connect_to(socket_path, err);
        int r = fd < 0 ? fd : judge_peer(fd, socket_path, err);

        if (r < 0)
                return r;
        r = exchange(fd, request, &answer);
        if (r < 0)
                err_set(err, r, "socket '%.150s': %s", socket_path, strerror(-r));
        else
                r = launch_client_parse(answer.data == NULL ? "" : answer.data, answer.size_bytes, ret, err);
        text_free(&answer);
        return r;
}

int launch_client_ask(const char *socket_path, const char *runtime, const char *devices,
                      struct launch_client_answer *ret, struct err *err)
{
        uint64_t end_usec = clock_monotonic_usec() + LAUNCH_CLIENT_PATIENCE_SECONDS * UINT64_C(1000000);
        struct text request = { 0 };
        int r;

        text_append(&request, "GET /v1/launch?runtime=");
        text_append_escaped(&request, runtime, ",");
        text_append(&request, "&devices=");
        text_append_escaped(&request, devices == NULL ? "" : devices, ",");
        text_append(&request,
                    " HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\nConnection: close\r\n\r\n");
        *ret = (struct launch_client_answer){ 0 };
        r = request.failed ? err_set(err, -ENOMEM, "no memory") : ask_once(socket_path, &request, ret, err);
        while (r < 0 && ret->retry_after_sec > 0 && clock_monotonic_usec() < end_usec) {
                (void) usleep((useconds_t) (ret->retry_after_sec % 60 * 1000000));
                r = ask_once(socket_path, &request, ret, err);
        }
        text_free(&request);
        return r;
}
