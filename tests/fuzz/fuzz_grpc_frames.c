/* Any bytes on a gRPC connection, at a server and at a client: never a crash, a leak or a loop that does not
 * end, and the server still answers a proper call afterwards. First byte: which side, and whether a proper
 * beginning comes before. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "base/text.h"
#include "io/grpc/grpc_address.h"
#include "io/grpc/grpc_client.h"
#include "io/grpc/grpc_server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bench {
        sd_event *loop;
        struct grpc_server *server;
        char server_address[128], raw_address[128];
        int raw; /* a listener that answers with the input */
};

/* PRI * HTTP/2.0..., SETTINGS, and the SETTINGS' acknowledgement */
static const uint8_t client_begin[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0\0\0\0\4\1\0\0\0\0";
static const uint8_t server_begin[] = "\0\0\0\4\0\0\0\0\0\0\0\0\4\1\0\0\0\0";

static void echo(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size)
{
        (void) userdata;
        grpc_call_reply(call, message, size);
}

static void hold(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size)
{
        (void) userdata;
        grpc_call_keep(call, NULL, NULL, NULL);
        (void) grpc_call_send(call, message, size);
}

static const struct grpc_method methods[] = { { "/e/Echo", echo }, { "/e/Hold", hold }, { NULL, NULL } };

static void begin(struct bench *bench)
{
        struct grpc_server_options options = { .address = bench->server_address,
                                               .methods = methods,
                                               .message_max_bytes = 65536 };
        char directory[] = "/tmp/remuda-fuzz-XXXXXX";
        struct err err = { 0 };

        if (mkdtemp(directory) == NULL || sd_event_new(&bench->loop) < 0)
                abort();
        (void) text_format(bench->server_address, sizeof(bench->server_address), "unix:%s/s", directory);
        (void) text_format(bench->raw_address, sizeof(bench->raw_address), "unix:%s/c", directory);
        bench->raw = grpc_address_listen(bench->raw_address, 0600, &err);
        if (bench->raw < 0 || grpc_server_new(bench->loop, &options, &bench->server, &err) < 0)
                abort();
        /* reached by their descriptors from now on: nothing is left behind when the fuzzer is killed */
}

static void turn(sd_event *loop)
{
        for (int i = 0; i < 100 && sd_event_run(loop, 0) > 0; i++)
                ;
}

static void say(int fd, const void *bytes, size_t size)
{
        (void) !send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void at_the_server(struct bench *bench, bool proper, const uint8_t *data, size_t size)
{
        bool connecting;
        int fd = grpc_address_connect(bench->server_address, &connecting, NULL);

        if (fd < 0)
                abort();
        turn(bench->loop);
        if (proper)
                say(fd, client_begin, sizeof(client_begin) - 1);
        say(fd, data, size);
        turn(bench->loop);
        (void) close(fd);
        turn(bench->loop);
        if (grpc_server_connections(bench->server) != 0)
                abort();
}

static void on_done(void *userdata, enum grpc_status status, const char *sentence)
{
        (void) status;
        (void) sentence;
        ++*(unsigned *) userdata;
}

static void at_the_client(struct bench *bench, bool proper, const uint8_t *data, size_t size)
{
        struct grpc_client_options options = { .address = bench->raw_address, .message_max_bytes = 65536 };
        unsigned done = 0;
        struct grpc_client_handlers handlers = { .on_done = on_done, .userdata = &done };
        struct grpc_client *client;
        int fd;

        if (grpc_client_new(bench->loop, &options, &client, NULL) < 0 ||
            grpc_client_call(client, "/e/Echo", (const uint8_t *) "hello", 5, 60000000, &handlers, NULL) <
                    0 ||
            grpc_client_call(client, "/e/Hold", NULL, 0, 0, &handlers, NULL) < 0)
                abort();
        fd = accept(bench->raw, NULL, NULL);
        turn(bench->loop);
        if (proper)
                say(fd, server_begin, sizeof(server_begin) - 1);
        say(fd, data, size);
        turn(bench->loop);
        (void) close(fd);
        turn(bench->loop);
        if (done != 2) /* each call ends exactly once */
                abort();
        grpc_client_free(client);
        turn(bench->loop);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct bench bench;

        if (bench.loop == NULL)
                begin(&bench);
        if (size == 0)
                return 0;
        if ((data[0] & 1) == 0)
                at_the_server(&bench, (data[0] & 2) == 0, data + 1, size - 1);
        else
                at_the_client(&bench, (data[0] & 2) == 0, data + 1, size - 1);
        return 0;
}
