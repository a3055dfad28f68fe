/* One connection that is made when it is needed and made again when it broke; a stream a call. */
#include "io/grpc/grpc_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/grpc/grpc_address.h"
#include "io/grpc/grpc_connection.h"

struct grpc_client {
        sd_event *loop;
        char address[160];
        struct grpc_client_options options;
        struct grpc_connection connection;
        bool connected;            /* `connection` holds a session */
        bool leaving;              /* the peer sent GOAWAY: the next call needs another connection */
        unsigned entered;          /* depth of our own frames on the stack that use the client */
        bool doomed;               /* freed from inside a callback: finish when the stack is ours no more */
        sd_event_source *failures; /* reports calls that ended outside a connection's callback */
        struct grpc_client_call *calls;
};

struct grpc_client_call {
        struct grpc_client *client;
        struct grpc_client_call *next, *previous;
        int32_t stream; /* -1 = none (any more) */
        char path[128];
        uint8_t *out;
        size_t out_bytes, out_offset;
        struct grpc_deframer in;
        struct grpc_client_handlers handlers;
        sd_event_source *deadline;
        unsigned http_status;
        bool grpc_content, have_status;
        bool over; /* `status` and `sentence` are final, on_done is due */
        enum grpc_status status;
        char sentence[GRPC_SENTENCE_BYTES];
};

#define HEADER(name_, value_)                                                                                \
        {                                                                                                    \
                .name = (uint8_t *) (name_), .value = (uint8_t *) (value_), .namelen = strlen(name_),        \
                .valuelen = strlen(value_), .flags = NGHTTP2_NV_FLAG_NONE                                    \
        }

const uint8_t *grpc_client_binding(const struct grpc_client *client)
{
        return grpc_connection_binding(&client->connection);
}

static void call_free(struct grpc_client_call *call)
{
        if (call->next != NULL)
                call->next->previous = call->previous;
        if (call->previous != NULL)
                call->previous->next = call->next;
        else
                call->client->calls = call->next;
        if (call->stream >= 0 && call->client->connected)
                (void) nghttp2_session_set_stream_user_data(call->client->connection.session, call->stream,
                                                            NULL);
        (void) sd_event_source_disable_unref(call->deadline);
        grpc_deframer_free(&call->in);
        free(call->out);
        free(call);
}

static void client_destroy(struct grpc_client *client)
{
        while (client->calls != NULL)
                call_free(client->calls);
        if (client->connected) {
                client->connected = false;
                grpc_connection_goodbye(&client->connection);
        }
        (void) sd_event_source_disable_unref(client->failures);
        (void) sd_event_unref(client->loop);
        free(client);
}

/* Tells every ended call's owner. Owners may do anything, so that the list is looked at anew each time. */
static void report_over(struct grpc_client *client)
{
        struct grpc_client_call *call = client->calls;

        client->entered++;
        while (call != NULL && !client->doomed) {
                struct grpc_client_handlers handlers = call->handlers;
                char sentence[GRPC_SENTENCE_BYTES];
                enum grpc_status status = call->status;

                if (!call->over) {
                        call = call->next;
                        continue;
                }
                (void) text_copy(sentence, sizeof(sentence), call->sentence);
                call_free(call);
                handlers.on_done(handlers.userdata, status, sentence);
                call = client->calls;
        }
        client->entered--;
        if (client->doomed && client->entered == 0 && !client->connection.dispatching)
                client_destroy(client);
}

static int on_failures(sd_event_source *source, void *userdata)
{
        (void) source;
        report_over(userdata);
        return 0;
}

static void end_call(struct grpc_client_call *call, enum grpc_status status, const char *sentence)
{
        if (call->over)
                return;
        call->over = true;
        call->status = status;
        (void) text_copy(call->sentence, sizeof(call->sentence), sentence);
        call->deadline = sd_event_source_disable_unref(call->deadline);
        (void) sd_event_source_set_enabled(call->client->failures, SD_EVENT_ONESHOT);
}

/* Ends a call that the server may still be working on. */
static void abort_call(struct grpc_client_call *call, enum grpc_status status, const char *sentence)
{
        struct grpc_client *client = call->client;

        if (call->stream >= 0 && client->connected) {
                (void) nghttp2_session_set_stream_user_data(client->connection.session, call->stream, NULL);
                (void) nghttp2_submit_rst_stream(client->connection.session, NGHTTP2_FLAG_NONE, call->stream,
                                                 NGHTTP2_CANCEL);
                grpc_connection_kick(&client->connection);
        }
        call->stream = -1;
        end_call(call, status, sentence);
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
        (void) source;
        (void) usec;
        abort_call(userdata, GRPC_DEADLINE_EXCEEDED, "no answer before the deadline");
        return 0;
}

static struct grpc_client_call *call_of(nghttp2_session *session, int32_t stream)
{
        struct grpc_client_call *call = nghttp2_session_get_stream_user_data(session, stream);

        return call == NULL || call->over ? NULL : call;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_bytes, const uint8_t *value, size_t value_bytes, uint8_t flags,
                     void *userdata)
{
        struct grpc_client_call *call = call_of(session, frame->hd.stream_id);
        const char *text = (const char *) value; /* nghttp2 puts a NUL behind it */
        uint64_t number;

        (void) flags;
        (void) userdata;
        if (call == NULL)
                return 0;
        if (grpc_header_is(":status", name, name_bytes) && text_parse_uint64(text, &number) == 0) {
                call->http_status = (unsigned) number;
        } else if (grpc_header_is("content-type", name, name_bytes)) {
                call->grpc_content = text_starts_with(text, "application/grpc");
        } else if (grpc_header_is("grpc-status", name, name_bytes)) {
                call->have_status = true;
                call->status = text_parse_uint64(text, &number) == 0 && number < GRPC_STATUS_COUNT
                                       ? (enum grpc_status) number
                                       : GRPC_UNKNOWN;
        } else if (grpc_header_is("grpc-message", name, name_bytes)) {
                grpc_sentence_decode(text, value_bytes, call->sentence, sizeof(call->sentence));
        }
        return 0;
}

static void refuse_frame(struct grpc_client_call *call, int error)
{
        if (error == -EMSGSIZE)
                abort_call(call, GRPC_RESOURCE_EXHAUSTED, "the answer is larger than what is accepted");
        else if (error == -ENOMEM)
                abort_call(call, GRPC_RESOURCE_EXHAUSTED, "no memory for the answer");
        else
                abort_call(call, GRPC_INTERNAL, "the answer's message frame cannot be read");
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data, size_t size,
                   void *userdata)
{
        struct grpc_client *client = userdata;
        struct grpc_client_call *call = call_of(session, stream);
        int r = 1;

        (void) flags;
        while (call != NULL && !client->doomed && size > 0 && r != 0) {
                if (!call->grpc_content) /* a web server's page is no message */
                        break;
                r = grpc_deframer_feed(&call->in, &data, &size);
                if (r < 0) {
                        refuse_frame(call, r);
                        break;
                }
                client->entered++;
                if (r == GRPC_FRAME_MESSAGE && call->handlers.on_message != NULL)
                        call->handlers.on_message(call->handlers.userdata, call->in.body,
                                                  call->in.size_bytes);
                client->entered--;
                call = client->doomed ? NULL : call_of(session, stream); /* the owner may have cancelled it */
        }
        return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *userdata)
{
        struct grpc_client *client = userdata;

        (void) session;
        if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0)
                grpc_connection_pong(&client->connection);
        if (frame->hd.type == NGHTTP2_GOAWAY)
                client->leaving = true;
        return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream, uint32_t error, void *userdata)
{
        struct grpc_client_call *call = call_of(session, stream);
        char sentence[96];

        (void) userdata;
        if (call == NULL)
                return 0;
        call->stream = -1;
        if (call->have_status && error == NGHTTP2_NO_ERROR && !grpc_deframer_partial(&call->in)) {
                char words[GRPC_SENTENCE_BYTES];

                (void) text_copy(words, sizeof(words), call->sentence);
                end_call(call, call->status, words);
        } else if (call->http_status != 0 && call->http_status != 200) {
                (void) text_format(sentence, sizeof(sentence), "the peer answered HTTP status %u",
                                   call->http_status);
                end_call(call, grpc_status_of_http(call->http_status), sentence);
        } else if (error == NGHTTP2_REFUSED_STREAM) {
                end_call(call, GRPC_UNAVAILABLE, "the peer takes no more calls");
        } else if (error == NGHTTP2_CANCEL) {
                end_call(call, GRPC_CANCELLED, "the peer gave the call up");
        } else {
                (void) text_format(sentence, sizeof(sentence),
                                   "the stream ended without a status (HTTP/2 error %u)", error);
                end_call(call, GRPC_INTERNAL, sentence);
        }
        return 0;
}

/* A request that never left: the peer had said goodbye, or the streams of the connection are used up. */
static int on_frame_not_sent(nghttp2_session *session, const nghttp2_frame *frame, int error, void *userdata)
{
        struct grpc_client *client = userdata;

        (void) session;
        (void) error;
        if (frame->hd.type != NGHTTP2_HEADERS)
                return 0;
        client->leaving = true;
        for (struct grpc_client_call *call = client->calls; call != NULL; call = call->next)
                if (call->stream == frame->hd.stream_id) {
                        call->stream = -1;
                        end_call(call, GRPC_UNAVAILABLE, "the connection takes no more calls");
                }
        return 0;
}

static ssize_t read_out(nghttp2_session *session, int32_t stream, uint8_t *buffer, size_t length,
                        uint32_t *flags, nghttp2_data_source *source, void *userdata)
{
        struct grpc_client_call *call = nghttp2_session_get_stream_user_data(session, stream);
        size_t n;

        (void) source;
        (void) userdata;
        if (call == NULL || call->out == NULL) {
                *flags |= NGHTTP2_DATA_FLAG_EOF;
                return 0;
        }
        n = call->out_bytes - call->out_offset < length ? call->out_bytes - call->out_offset : length;
        memcpy(buffer, call->out + call->out_offset, n);
        call->out_offset += n;
        if (call->out_offset == call->out_bytes) {
                free(TAKE(call->out));
                *flags |= NGHTTP2_DATA_FLAG_EOF;
        }
        return (ssize_t) n;
}

static void end_all(struct grpc_client *client, enum grpc_status status, const char *why)
{
        char sentence[GRPC_SENTENCE_BYTES];

        (void) text_format(sentence, sizeof(sentence), "'%s': %s", client->address, why);
        for (struct grpc_client_call *call = client->calls; call != NULL; call = call->next) {
                if (call->stream >= 0)
                        call->stream = -1;
                end_call(call, status, sentence);
        }
}

static void on_connection_closed(struct grpc_connection *connection)
{
        struct grpc_client *client = connection->owner;

        client->connected = client->leaving = false;
        end_all(client, connection->refused ? GRPC_UNAUTHENTICATED : GRPC_UNAVAILABLE, connection->why);
        grpc_connection_release(connection);
}

static nghttp2_session *new_session(struct grpc_client *client)
{
        nghttp2_settings_entry settings[] = { { NGHTTP2_SETTINGS_ENABLE_PUSH, 0 } };
        nghttp2_session_callbacks *callbacks;
        nghttp2_session *session = NULL;

        if (nghttp2_session_callbacks_new(&callbacks) != 0)
                return NULL;
        nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
        nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_frame_not_sent);
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
        if (nghttp2_session_client_new(&session, callbacks, client) != 0)
                session = NULL;
        nghttp2_session_callbacks_del(callbacks);
        if (session != NULL &&
            nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, ARRAY_SIZE(settings)) != 0)
                nghttp2_session_del(TAKE(session));
        return session;
}

static int connect_client(struct grpc_client *client, struct err *err)
{
        nghttp2_session *session;
        bool connecting;
        int fd, r;

        if (client->connected)
                return 0;
        fd = grpc_address_connect(client->address, &connecting, err);
        if (fd < 0)
                return fd;
        session = new_session(client);
        if (session == NULL) {
                (void) close(fd);
                return err_set(err, -ENOMEM, "no memory for a connection");
        }
        client->connection = (struct grpc_connection){ .owner = client, .on_closed = on_connection_closed };
        if (client->options.wrap != NULL) {
                client->connection.transport = client->options.wrap(client->options.wrap_userdata, fd);
                if (client->connection.transport == NULL) {
                        nghttp2_session_del(session);
                        (void) close(fd);
                        return err_set(err, -ENOMEM, "no memory for a connection");
                }
        }
        r = grpc_connection_start(&client->connection, client->loop, fd, session, connecting, err);
        if (r < 0)
                return r;
        if (client->options.keepalive_usec > 0)
                r = grpc_connection_keepalive(&client->connection, client->options.keepalive_usec,
                                              client->options.keepalive_timeout_usec);
        if (r < 0) {
                grpc_connection_release(&client->connection);
                return err_set(err, r, "make the keep-alive's timer: %s", strerrordesc_np(-r));
        }
        client->connected = true;
        client->leaving = false;
        return 0;
}

static int submit(struct grpc_client_call *call, uint64_t timeout_usec)
{
        struct grpc_client *client = call->client;
        char timeout[16];
        nghttp2_nv headers[8] = { HEADER(":method", "POST"),
                                  HEADER(":scheme", "http"),
                                  HEADER(":path", call->path),
                                  HEADER(":authority", "localhost"),
                                  HEADER("content-type", "application/grpc"),
                                  HEADER("te", "trailers"),
                                  HEADER("user-agent", "remuda") };
        nghttp2_data_provider provider = { .read_callback = read_out };
        size_t n = 7;

        if (timeout_usec > 0) {
                nghttp2_nv last;

                grpc_timeout_format(timeout_usec, timeout, sizeof(timeout));
                last = (nghttp2_nv) HEADER("grpc-timeout", timeout);
                headers[n++] = last;
        }
        call->stream = nghttp2_submit_request(client->connection.session, NULL, headers, n, &provider, call);
        grpc_connection_kick(&client->connection);
        return call->stream < 0 ? -EAGAIN : 0;
}

int grpc_client_call(struct grpc_client *client, const char *path, const uint8_t *message, size_t size_bytes,
                     uint64_t timeout_usec, const struct grpc_client_handlers *handlers,
                     struct grpc_client_call **ret)
{
        struct grpc_client_call *call = calloc(1, sizeof(*call));
        struct err err = { 0 };
        int r = 0;

        if (call == NULL)
                return -ENOMEM;
        call->client = client;
        call->stream = -1;
        call->handlers = *handlers;
        call->in.max_bytes = client->options.message_max_bytes;
        (void) text_copy(call->path, sizeof(call->path), path);
        call->next = client->calls;
        if (call->next != NULL)
                call->next->previous = call;
        client->calls = call;
        call->out = grpc_frame(message, size_bytes, &call->out_bytes);
        if (call->out == NULL) {
                call_free(call);
                return -ENOMEM;
        }
        if (timeout_usec > 0)
                r = sd_event_add_time_relative(client->loop, &call->deadline, CLOCK_MONOTONIC, timeout_usec,
                                               1000, on_deadline, call);
        if (r < 0) {
                call_free(call);
                return r;
        }
        if (client->leaving && !client->connection.dispatching)
                grpc_client_disconnect(client);
        if (connect_client(client, &err) < 0)
                end_call(call, GRPC_UNAVAILABLE, err.msg);
        else if (submit(call, timeout_usec) < 0)
                end_call(call, GRPC_UNAVAILABLE, "the connection takes no more calls");
        if (ret != NULL)
                *ret = call;
        return 0;
}

void grpc_client_cancel(struct grpc_client_call *call)
{
        call->over = false;
        abort_call(call, GRPC_CANCELLED, "");
        call_free(call);
}

void grpc_client_disconnect(struct grpc_client *client)
{
        if (!client->connected)
                return;
        client->connected = client->leaving = false;
        for (struct grpc_client_call *call = client->calls; call != NULL; call = call->next)
                if (call->stream >= 0) {
                        call->stream = -1;
                        end_call(call, GRPC_UNAVAILABLE, "disconnected");
                }
        grpc_connection_goodbye(&client->connection);
}

int grpc_client_new(sd_event *loop, const struct grpc_client_options *options, struct grpc_client **ret,
                    struct err *err)
{
        struct grpc_client *client = calloc(1, sizeof(*client));
        int r;

        if (client == NULL)
                return err_set(err, -ENOMEM, "no memory for a client");
        client->options = *options;
        if (client->options.message_max_bytes == 0)
                client->options.message_max_bytes = GRPC_MESSAGE_MAX_BYTES;
        if (client->options.keepalive_timeout_usec == 0)
                client->options.keepalive_timeout_usec = 20000000;
        client->connection.fd = -1;
        if (!text_copy(client->address, sizeof(client->address), options->address)) {
                free(client);
                return err_set(err, -ENAMETOOLONG, "address '%s' is too long", options->address);
        }
        r = sd_event_add_defer(loop, &client->failures, on_failures, client);
        if (r >= 0)
                r = sd_event_source_set_enabled(client->failures, SD_EVENT_OFF);
        if (r < 0) {
                (void) sd_event_source_unref(client->failures);
                free(client);
                return err_set(err, r, "watch a client: %s", strerror(-r));
        }
        client->loop = sd_event_ref(loop);
        *ret = client;
        return 0;
}

void grpc_client_free(struct grpc_client *client)
{
        if (client == NULL)
                return;
        client->doomed = true;
        if (client->entered > 0 || client->connection.dispatching)
                (void) sd_event_source_set_enabled(client->failures, SD_EVENT_ONESHOT);
        else
                client_destroy(client);
}
