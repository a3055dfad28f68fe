/* What a client makes of every kind of peer: one that answers well, one that is no gRPC server, and those
 * that break off, refuse or babble. The peer's frames are written here by hand (RFC 9113, 7541). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/grpc/grpc_client.h"
#include "io/loop.h"

#define MESSAGE_MAX    16
#define PREFACE_BYTES  24 /* before the client's first frame */
#define FRAME_BYTES    9
#define FRAME_DATA     0
#define FRAME_HEADERS  1
#define FRAME_RESET    3
#define FRAME_SETTINGS 4
#define FRAME_GOAWAY   7
#define END_STREAM     1
#define END_HEADERS    4

/* A peer that answers the first call of each connection as it is told to. */
struct peer {
        int listening, fd;
        sd_event_source *accepting, *reading;
        const char *script;
        struct text heard;
        bool answered;
        char address[64];
};

struct outcome {
        unsigned messages, done;
        char last[32];
        enum grpc_status status;
        char sentence[GRPC_SENTENCE_BYTES];
};

static void append_frame(struct text *out, unsigned type, unsigned flags, unsigned stream,
                         const char *payload, size_t size)
{
        const unsigned char head[FRAME_BYTES] = { (unsigned char) (size >> 16),
                                                  (unsigned char) (size >> 8),
                                                  (unsigned char) size,
                                                  (unsigned char) type,
                                                  (unsigned char) flags,
                                                  0,
                                                  0,
                                                  0,
                                                  (unsigned char) stream };

        text_append_bytes(out, (const char *) head, sizeof(head));
        text_append_bytes(out, payload, size);
}

static void append_word(struct text *out, const char *word, size_t size)
{
        text_append_char(out, (char) size);
        text_append_bytes(out, word, size);
}

/* "status=200,content-type=x": literals that no table keeps; the name "status" is ":status". */
static void append_headers(struct text *out, const char *fields, unsigned flags)
{
        CLEANUP(text_free) struct text block = { 0 };

        while (*fields != '\0') {
                size_t name = strcspn(fields, "="), value = strcspn(fields + name + 1, ",");

                text_append_char(&block, '\0');
                if (strncmp(fields, "status=", 7) == 0)
                        append_word(&block, ":status", 7);
                else
                        append_word(&block, fields, name);
                append_word(&block, fields + name + 1, value);
                fields += name + 1 + value;
                fields += *fields == ',';
        }
        append_frame(out, FRAME_HEADERS, END_HEADERS | flags, 1, block.data, block.size_bytes);
}

/* A word of a script: Hfields, Tfields (trailers: the stream ends), DFtext (a message, F its flag), Plength
 * (the head of a message so long), Rcode (the stream is reset), G (goodbye), Btext (no frame). */
static void append_answer(struct text *out, const char *word)
{
        const char *rest = word + 1;
        char message[64] = { 0 };
        size_t size = strlen(rest);
        uint32_t number = htonl((uint32_t) strtoul(rest, NULL, 10));

        switch (word[0]) {
        case 'H':
        case 'T':
                append_headers(out, rest, word[0] == 'T' ? END_STREAM : 0);
                break;
        case 'D':
                message[0] = (char) (rest[0] - '0');
                message[4] = (char) (size - 1);
                memcpy(message + 5, rest + 1, size - 1);
                append_frame(out, FRAME_DATA, 0, 1, message, size + 4);
                break;
        case 'P':
                memcpy(message + 1, &number, sizeof(number));
                append_frame(out, FRAME_DATA, 0, 1, message, 5);
                break;
        case 'R':
                append_frame(out, FRAME_RESET, 0, 1, (const char *) &number, sizeof(number));
                break;
        case 'G':
                append_frame(out, FRAME_GOAWAY, 0, 0, message, 8); /* no stream was taken */
                break;
        default:
                text_append(out, rest);
        }
}

static void answer(struct peer *peer)
{
        CLEANUP(text_free) struct text out = { 0 };
        char script[256], *save = NULL;

        (void) text_copy(script, sizeof(script), peer->script);
        append_frame(&out, FRAME_SETTINGS, 0, 0, "", 0);
        for (const char *word = strtok_r(script, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save))
                append_answer(&out, word);
        (void) send(peer->fd, out.data, out.size_bytes, MSG_NOSIGNAL);
        peer->answered = true;
}

/* Has the whole request come: a frame that ends the stream? */
static bool is_asked(const struct text *heard)
{
        const unsigned char *bytes = (const unsigned char *) heard->data;

        for (size_t at = PREFACE_BYTES; at + FRAME_BYTES <= heard->size_bytes;) {
                if (bytes[at + 3] == FRAME_DATA && (bytes[at + 4] & END_STREAM) != 0)
                        return true;
                at += FRAME_BYTES + ((size_t) bytes[at] << 16 | (size_t) bytes[at + 1] << 8 | bytes[at + 2]);
        }
        return false;
}

static int on_bytes(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct peer *peer = userdata;
        char bytes[4096];
        ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

        (void) events;
        if (n > 0)
                text_append_bytes(&peer->heard, bytes, (size_t) n);
        if (n > 0 && !peer->answered && is_asked(&peer->heard)) {
                answer(peer);
                if (text_ends_with(peer->script, " X"))
                        n = 0;
        }
        if (n <= 0) {
                (void) shutdown(fd, SHUT_RDWR);
                (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        }
        return 0;
}

static int on_connection(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct peer *peer = userdata;

        (void) events;
        assert_int_equal(peer->fd, -1);
        peer->fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        assert_true(peer->fd >= 0);
        return sd_event_add_io(sd_event_source_get_event(source), &peer->reading, peer->fd, EPOLLIN, on_bytes,
                               peer);
}

static void listen_on_loopback(sd_event *loop, struct peer *peer)
{
        struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof(at);

        peer->fd = -1;
        peer->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(peer->listening, (const struct sockaddr *) &at, size), 0);
        assert_int_equal(listen(peer->listening, 8), 0);
        assert_int_equal(getsockname(peer->listening, (struct sockaddr *) &at, &size), 0);
        (void) text_format(peer->address, sizeof(peer->address), "127.0.0.1:%u", ntohs(at.sin_port));
        assert_true(sd_event_add_io(loop, &peer->accepting, peer->listening, EPOLLIN, on_connection, peer) >=
                    0);
}

static void leave(struct peer *peer)
{
        (void) sd_event_source_disable_unref(peer->accepting);
        (void) sd_event_source_disable_unref(peer->reading);
        (void) close(peer->listening);
        if (peer->fd >= 0)
                (void) close(peer->fd);
        text_free(&peer->heard);
}

static void on_message(void *userdata, const uint8_t *message, size_t size)
{
        struct outcome *outcome = userdata;

        outcome->messages++;
        (void) text_format(outcome->last, sizeof(outcome->last), "%.*s", (int) size, (const char *) message);
}

static void on_done(void *userdata, enum grpc_status status, const char *sentence)
{
        struct outcome *outcome = userdata;

        outcome->done++;
        outcome->status = status;
        (void) text_copy(outcome->sentence, sizeof(outcome->sentence), sentence);
}

#define BEGUN "Hstatus=200,content-type=application/grpc "

/* clang-format off */
static const struct {
        const char *what, *script;
        enum grpc_status status;
        const char *sentence; /* a part of it */
        unsigned messages;
} rows[] = {
        { "an answer",                BEGUN "D0hello Tgrpc-status=0",                GRPC_OK, "", 1 },
        { "two",                      BEGUN "D0hello D0hello Tgrpc-status=0",        GRPC_OK, "", 2 },
        { "a no, in words",           BEGUN "Tgrpc-status=5,grpc-message=no%20such%0Athing", GRPC_NOT_FOUND, "no such thing", 0 },
        { "a no at once",             "Tstatus=200,content-type=application/grpc,grpc-status=12", GRPC_UNIMPLEMENTED, "", 0 },
        { "a status that is none",    BEGUN "Tgrpc-status=99",                       GRPC_UNKNOWN, "", 0 },
        { "a status of letters",      BEGUN "Tgrpc-status=x",                        GRPC_UNKNOWN, "", 0 },
        { "no status",                BEGUN "D0hello Tx=y",                          GRPC_INTERNAL, "the stream ended without a status (HTTP/2 error 0)", 1 },
        { "a proxy without a server", "Hstatus=503,content-type=text/html D0oops Tx=y", GRPC_UNAVAILABLE, "the peer answered HTTP status 503", 0 },
        { "a proxy that refuses",     "Tstatus=403",                                 GRPC_PERMISSION_DENIED, "the peer answered HTTP status 403", 0 },
        { "a proxy with other words", "Tstatus=418",                                 GRPC_UNKNOWN, "the peer answered HTTP status 418", 0 },
        { "a page",                   "Hstatus=200,content-type=text/html D0hello Tx=y", GRPC_INTERNAL, "without a status", 0 },
        { "a message too large",      BEGUN "P17",                                   GRPC_RESOURCE_EXHAUSTED, "larger than what is accepted", 0 },
        { "a message that is packed", BEGUN "D1hello",                               GRPC_INTERNAL, "frame cannot be read", 0 },
        { "a flag that is none",      BEGUN "D2hello",                               GRPC_INTERNAL, "frame cannot be read", 0 },
        { "half a message",           BEGUN "P5 Tgrpc-status=0",                     GRPC_INTERNAL, "without a status", 0 },
        { "it takes no more",         "R7",                                          GRPC_UNAVAILABLE, "the peer takes no more calls", 0 },
        { "it gave up",               BEGUN "R8",                                    GRPC_CANCELLED, "the peer gave the call up", 0 },
        { "it failed",                BEGUN "R2",                                    GRPC_INTERNAL, "HTTP/2 error 2", 0 },
        { "it says goodbye",          "G",                                           GRPC_UNAVAILABLE, "the peer takes no more calls", 0 },
        { "it speaks no HTTP/2",      "BHTTP/1.1-400-Bad-Request-and-some-more-words", GRPC_UNAVAILABLE, "127.0.0.1:", 0 },
        { "it leaves",                BEGUN "X",                                     GRPC_UNAVAILABLE, "127.0.0.1:", 0 },
};
/* clang-format on */

static void every_peer_is_told_as_what_it_is(void **state)
{
        size_t wrong = 0;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct peer peer = { .script = rows[i].script };
                struct grpc_client_options options = { .address = peer.address,
                                                       .message_max_bytes = MESSAGE_MAX };
                struct outcome outcome = { .messages = 0 };
                const struct grpc_client_handlers handlers = { .on_message = on_message,
                                                               .on_done = on_done,
                                                               .userdata = &outcome };
                struct grpc_client *client = NULL;
                sd_event *loop = NULL;

                assert_int_equal(loop_new(&loop, NULL), 0);
                listen_on_loopback(loop, &peer);
                assert_int_equal(grpc_client_new(loop, &options, &client, NULL), 0);
                assert_int_equal(
                        grpc_client_call(client, "/t/Echo", (const uint8_t *) "x", 1, 0, &handlers, NULL), 0);
                for (unsigned turns = 0; outcome.done == 0 && turns < 2000; turns++)
                        assert_true(sd_event_run(loop, 10000) >= 0);
                if (outcome.done != 1 || outcome.status != rows[i].status ||
                    outcome.messages != rows[i].messages ||
                    strstr(outcome.sentence, rows[i].sentence) == NULL) {
                        print_error("%s: %u done, %s, %u messages, '%s'\n", rows[i].what, outcome.done,
                                    grpc_status_name(outcome.status), outcome.messages, outcome.sentence);
                        wrong++;
                }
                grpc_client_free(client);
                leave(&peer);
                sd_event_unref(loop);
        }
        assert_int_equal(wrong, 0);
}

static void an_address_that_is_too_long_is_refused(void **state)
{
        char address[400];
        const struct grpc_client_options options = { .address = address };
        struct grpc_client *client = NULL;
        struct err err = { 0 };
        sd_event *loop = NULL;

        (void) state;
        memset(address, 'x', sizeof(address) - 1);
        address[sizeof(address) - 1] = '\0';
        assert_int_equal(loop_new(&loop, NULL), 0);
        assert_true(grpc_client_new(loop, &options, &client, &err) < 0);
        assert_true(text_starts_with(err.msg, "address 'xxx"));
        assert_null(client);
        sd_event_unref(loop);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_peer_is_told_as_what_it_is),
                cmocka_unit_test(an_address_that_is_too_long_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
