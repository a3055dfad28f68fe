/* echo-extender ADDR:PORT [N]: a scheduler extender that only echoes the names; what the protocol itself
 * costs.
 *
 * filter: the names as they came, or the first N of them. prioritize: each name with score 0. On the same
 * HTTP server as ours. */
#include <stdio.h>
#include <stdlib.h>

#include "io/http/http_server.h"
#include "io/loop.h"
#include "scheduler-extender/wire/extender_args.h"
#include "scheduler-extender/wire/extender_reply.h"

static size_t most = SIZE_MAX; /* names that filter echoes */
static struct names_memory memory;

static void echo(const struct http_request *request, struct http_reply *reply, bool scores)
{
        struct roster nobody = { 0 };
        struct extender_args args;
        struct err err = { 0 };

        if (extender_args_decode(request->body, request->body_bytes, &nobody, &memory, &args, &err) < 0) {
                http_reply_error(reply, 400, "%s", err.msg);
        } else if (scores) {
                uint8_t *zeros = calloc(args.node_count + 1, 1);

                reply->body = extender_reply_prioritize(&args, zeros, &reply->body_bytes);
                free(zeros);
        } else {
                for (size_t i = most; i < args.node_count; i++)
                        args.verdicts[i] = EXTENDER_ARGS_AGAIN; /* nothing is said of it */
                reply->body = extender_reply_filter(&args, NULL, &reply->body_bytes);
        }
        extender_args_free(&args);
}

static void filter(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        (void) userdata;
        echo(request, reply, false);
}

static void prioritize(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        (void) userdata;
        echo(request, reply, true);
}

int main(int argc, char **argv)
{
        static const struct http_route routes[] = {
                { .method = "POST", .path = "/scheduler/filter", .handler = filter },
                { .method = "POST", .path = "/scheduler/prioritize", .handler = prioritize },
                { 0 },
        };
        struct http_server_options options = { .address = argc > 1 ? argv[1] : "127.0.0.1:0",
                                               .routes = routes };
        struct http_server *server = NULL;
        sd_event *loop = NULL;
        struct err err = { 0 };

        if (argc > 2)
                most = strtoul(argv[2], NULL, 10);
        if (loop_new(&loop, &err) < 0 || http_server_new(loop, &options, &server, &err) < 0) {
                fprintf(stderr, "echo-extender: %s\n", err.msg);
                return 1;
        }
        fprintf(stderr, "listening address=%s\n", http_server_address(server));
        (void) loop_run(loop);
        http_server_free(server);
        sd_event_unref(loop);
        return 0;
}
