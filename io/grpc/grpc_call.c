/* What comes and goes on the streams of one peer: requests into messages, messages into replies, deadlines.
 */
#include "io/grpc/grpc_call.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/grpc/grpc_server_internal.h"

#define CALLS_PER_CONNECTION_MAX 100

#define HEADER(name_, value_)                                                                                \
        {                                                                                                    \
                .name = (uint8_t *) (name_), .value = (uint8_t *) (value_), .namelen = strlen(name_),        \
                .valuelen = strlen(value_), .flags = NGHTTP2_NV_FLAG_NONE                                    \
        }

static nghttp2_session *session_of(struct grpc_call *call)
{
        return call->peer->connection.session;
}

static size_t trailers(struct grpc_call *call, char *status, size_t status_bytes, char *sentence,
                       size_t sentence_bytes, nghttp2_nv *ret)
{
        nghttp2_nv code, words;

        (void) text_format(status, status_bytes, "%d", (int) call->status);
        grpc_sentence_encode(call->sentence, sentence, sentence_bytes);
        code = (nghttp2_nv) HEADER("grpc-status", status);
        words = (nghttp2_nv) HEADER("grpc-message", sentence);
        ret[0] = code;
        ret[1] = words;
        return sentence[0] == '\0' ? 1 : 2;
}

static void answer_without_body(struct grpc_call *call)
{
        char status[12], sentence[3 * GRPC_SENTENCE_BYTES];
        nghttp2_nv headers[5] = { HEADER(":status", "200"), HEADER("content-type", "application/grpc"),
                                  HEADER("grpc-accept-encoding", "identity") };
        size_t n = 3 + trailers(call, status, sizeof(status), sentence, sizeof(sentence), headers + 3);

        call->answered = true;
        (void) nghttp2_submit_response(session_of(call), call->stream, headers, n, NULL);
        grpc_connection_kick(&call->peer->connection);
}

static void answer_http(struct grpc_call *call, const char *status)
{
        nghttp2_nv headers[] = { HEADER(":status", status) };

        call->answered = call->finished = true;
        (void) nghttp2_submit_response(session_of(call), call->stream, headers, ARRAY_SIZE(headers), NULL);
}

static void submit_trailers(struct grpc_call *call)
{
        char status[12], sentence[3 * GRPC_SENTENCE_BYTES];
        nghttp2_nv headers[2];
        size_t n = trailers(call, status, sizeof(status), sentence, sizeof(sentence), headers);

        (void) nghttp2_submit_trailer(session_of(call), call->stream, headers, n);
}

static void drop_out(struct grpc_call *call)
{
        free(TAKE(call->out));
        call->out_bytes = call->out_offset = 0;
}

static ssize_t read_out(nghttp2_session *session, int32_t stream, uint8_t *buffer, size_t length,
                        uint32_t *flags, nghttp2_data_source *source, void *userdata)
{
        struct grpc_call *call = source->ptr;
        size_t n = call->out_bytes - call->out_offset;

        (void) session;
        (void) stream;
        (void) userdata;
        if (n > length)
                n = length;
        if (n > 0) {
                memcpy(buffer, call->out + call->out_offset, n);
                call->out_offset += n;
        }
        if (call->out != NULL && call->out_offset == call->out_bytes) {
                drop_out(call);
                if (!call->finished && call->on_idle != NULL)
                        call->on_idle(call->userdata, call);
        }
        if (call->out == NULL && call->finished) {
                *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
                submit_trailers(call);
                return (ssize_t) n;
        }
        return n == 0 ? NGHTTP2_ERR_DEFERRED : (ssize_t) n;
}

static void pump(struct grpc_call *call)
{
        nghttp2_nv headers[] = { HEADER(":status", "200"), HEADER("content-type", "application/grpc") };
        nghttp2_data_provider provider = { .source = { .ptr = call }, .read_callback = read_out };

        if (!call->answered) {
                call->answered = true;
                (void) nghttp2_submit_response(session_of(call), call->stream, headers, ARRAY_SIZE(headers),
                                               &provider);
        } else {
                (void) nghttp2_session_resume_data(session_of(call), call->stream);
        }
        grpc_connection_kick(&call->peer->connection);
}

int grpc_call_send(struct grpc_call *call, const uint8_t *message, size_t size_bytes)
{
        assert(!call->finished);
        if (call->out != NULL)
                return -EBUSY;
        call->out = grpc_frame(message, size_bytes, &call->out_bytes);
        if (call->out == NULL)
                return -ENOMEM;
        call->out_offset = 0;
        pump(call);
        return 0;
}

bool grpc_call_busy(const struct grpc_call *call)
{
        return call->out != NULL;
}

struct grpc_server *grpc_call_server(const struct grpc_call *call)
{
        return call->peer->server;
}

uint64_t grpc_call_connection(const struct grpc_call *call)
{
        return call->peer->number;
}

bool grpc_call_named(const struct grpc_call *call)
{
        const struct transport *transport = call->peer->connection.transport;

        return transport == NULL || transport->named;
}

const uint8_t *grpc_call_binding(const struct grpc_call *call)
{
        return grpc_connection_binding(&call->peer->connection);
}

void grpc_call_peer(const struct grpc_call *call, char *ret, size_t ret_bytes)
{
        union {
                struct sockaddr any;
                struct sockaddr_in in;
                struct sockaddr_in6 in6;
        } u = { 0 };
        socklen_t size = sizeof(u);
        char host[INET6_ADDRSTRLEN] = "";

        if (getpeername(call->peer->connection.fd, &u.any, &size) == 0 && u.any.sa_family == AF_INET)
                (void) inet_ntop(AF_INET, &u.in.sin_addr, host, sizeof(host));
        else if (u.any.sa_family == AF_INET6)
                (void) inet_ntop(AF_INET6, &u.in6.sin6_addr, host, sizeof(host));
        (void) text_copy(ret, ret_bytes, host);
}

void grpc_call_finish(struct grpc_call *call, enum grpc_status status, const char *sentence)
{
        if (call->finished)
                return;
        call->finished = true;
        call->on_idle = NULL;
        call->on_closed = NULL;
        call->status = status;
        call->deadline = sd_event_source_disable_unref(call->deadline);
        (void) text_copy(call->sentence, sizeof(call->sentence), sentence == NULL ? "" : sentence);
        if (!call->answered && call->out == NULL && status != GRPC_OK)
                answer_without_body(call);
        else
                pump(call);
}

void grpc_call_reply(struct grpc_call *call, const uint8_t *message, size_t size_bytes)
{
        int r = grpc_call_send(call, message, size_bytes);

        if (r < 0)
                grpc_call_finish(call, GRPC_RESOURCE_EXHAUSTED, "no memory for the answer");
        else
                grpc_call_finish(call, GRPC_OK, NULL);
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct grpc_call *call = userdata;

        (void) source;
        (void) usec;
        if (call->on_closed != NULL)
                call->on_closed(call->userdata, call);
        grpc_call_finish(call, GRPC_DEADLINE_EXCEEDED, "the caller's deadline has passed");
        return 0;
}

void grpc_call_keep(struct grpc_call *call, void (*on_idle)(void *userdata, struct grpc_call *call),
                    void (*on_closed)(void *userdata, struct grpc_call *call), void *userdata)
{
        call->kept = true;
        call->on_idle = on_idle;
        call->on_closed = on_closed;
        call->userdata = userdata;
}

static void refuse(struct grpc_call *call, enum grpc_status status, const char *sentence)
{
        call->kept = true;
        grpc_call_finish(call, status, sentence);
}

void grpc_call_free(struct grpc_call *call)
{
        struct grpc_peer *peer = call->peer;

        if (call->next != NULL)
                call->next->previous = call->previous;
        if (call->previous != NULL)
                call->previous->next = call->next;
        else
                peer->calls = call->next;
        peer->call_count--;
        if (!call->finished && call->on_closed != NULL)
                call->on_closed(call->userdata, call);
        (void) sd_event_source_disable_unref(call->deadline);
        grpc_deframer_free(&call->in);
        free(call->request);
        free(call->out);
        free(call);
}

static void look_up(struct grpc_call *call)
{
        const struct grpc_method *method = call->peer->server->options.methods;
        char sentence[GRPC_PATH_BYTES + 32];

        if (!call->post) {
                answer_http(call, "405");
                return;
        }
        if (!call->grpc_content) {
                answer_http(call, "415");
                return;
        }
        while (method->path != NULL && strcmp(method->path, call->path) != 0)
                method++;
        call->method = method;
        if (method->path == NULL) {
                (void) text_format(sentence, sizeof(sentence), "unknown method %s", call->path);
                refuse(call, GRPC_UNIMPLEMENTED, sentence);
        } else if (call->bad_timeout) {
                refuse(call, GRPC_INTERNAL, "malformed grpc-timeout");
        } else if (call->timeout_usec > 0 &&
                   sd_event_add_time_relative(call->peer->server->loop, &call->deadline, CLOCK_MONOTONIC,
                                              call->timeout_usec, 1000, on_deadline, call) < 0) {
                refuse(call, GRPC_RESOURCE_EXHAUSTED, "no timer for the call's deadline");
        }
}

static void dispatch(struct grpc_call *call)
{
        struct grpc_server *server = call->peer->server;

        if (call->finished)
                return;
        if (grpc_deframer_partial(&call->in) || !call->have_request) {
                refuse(call, GRPC_INTERNAL, "the request ended before its message did");
                return;
        }
        call->peer->last_used = ++server->uses;
        call->method->handler(server->options.userdata, call, call->request, call->request_bytes);
        free(TAKE(call->request));
        if (!call->finished && !call->kept)
                refuse(call, GRPC_INTERNAL, "the method gave no answer");
}

static void refuse_frame(struct grpc_call *call, int error)
{
        if (error == -EPROTONOSUPPORT && call->encoded)
                refuse(call, GRPC_UNIMPLEMENTED, "compressed messages are not supported; send identity");
        else if (error == -EPROTONOSUPPORT)
                refuse(call, GRPC_INTERNAL, "a compressed message without grpc-encoding");
        else if (error == -EMSGSIZE)
                refuse(call, GRPC_RESOURCE_EXHAUSTED, "the message is larger than what is accepted");
        else if (error == -EBADMSG)
                refuse(call, GRPC_INTERNAL, "malformed message frame");
        else
                refuse(call, GRPC_RESOURCE_EXHAUSTED, "no memory for the message");
}

static void take_message(struct grpc_call *call)
{
        if (call->have_request) {
                refuse(call, GRPC_INTERNAL, "more than one message in the request");
                return;
        }
        call->have_request = true;
        call->request_bytes = call->in.size_bytes;
        call->request = TAKE(call->in.body);
        call->in.capacity_bytes = 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data, size_t size,
                   void *userdata)
{
        struct grpc_call *call = nghttp2_session_get_stream_user_data(session, stream);
        int r = 1;

        (void) flags;
        (void) userdata;
        while (call != NULL && !call->finished && size > 0 && r != 0) {
                r = grpc_deframer_feed(&call->in, &data, &size);
                if (r < 0)
                        refuse_frame(call, r);
                else if (r == GRPC_FRAME_MESSAGE)
                        take_message(call);
        }
        return 0;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *userdata)
{
        struct grpc_peer *peer = userdata;
        struct grpc_call *call;

        if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
                return 0;
        call = calloc(1, sizeof(*call));
        if (call == NULL)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        call->peer = peer;
        call->stream = frame->hd.stream_id;
        call->in.max_bytes = peer->server->options.message_max_bytes;
        call->next = peer->calls;
        if (call->next != NULL)
                call->next->previous = call;
        peer->calls = call;
        peer->call_count++;
        (void) nghttp2_session_set_stream_user_data(session, call->stream, call);
        return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_bytes, const uint8_t *value, size_t value_bytes, uint8_t flags,
                     void *userdata)
{
        struct grpc_call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
        const char *text = (const char *) value; /* nghttp2 puts a NUL behind it */

        (void) flags;
        (void) userdata;
        if (call == NULL)
                return 0;
        if (grpc_header_is(":path", name, name_bytes))
                (void) text_copy(call->path, sizeof(call->path), text);
        else if (grpc_header_is(":method", name, name_bytes))
                call->post = strcmp(text, "POST") == 0;
        else if (grpc_header_is("content-type", name, name_bytes))
                call->grpc_content = text_starts_with(text, "application/grpc");
        else if (grpc_header_is("grpc-encoding", name, name_bytes))
                call->encoded = strcmp(text, "identity") != 0;
        else if (grpc_header_is("grpc-timeout", name, name_bytes))
                call->bad_timeout = grpc_timeout_parse(text, value_bytes, &call->timeout_usec) < 0;
        return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *userdata)
{
        struct grpc_peer *peer = userdata;
        struct grpc_call *call;

        if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0)
                grpc_connection_pong(&peer->connection);
        if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
                return 0;
        call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
        if (call == NULL)
                return 0;
        if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0)
                call->remote_done = true;
        if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
                look_up(call);
        if (call->remote_done)
                dispatch(call);
        return 0;
}

/* An answer given before the request's end: tell the peer to stop sending. Not earlier, or nghttp2 drops it.
 */
static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *userdata)
{
        struct grpc_call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

        (void) userdata;
        if (call != NULL && frame->hd.type == NGHTTP2_HEADERS && !call->remote_done &&
            (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0)
                (void) nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, call->stream, NGHTTP2_NO_ERROR);
        return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream, uint32_t error, void *userdata)
{
        struct grpc_call *call = nghttp2_session_get_stream_user_data(session, stream);

        (void) error;
        (void) userdata;
        if (call != NULL)
                grpc_call_free(call);
        return 0;
}

int grpc_peer_session(struct grpc_peer *peer, nghttp2_session **ret)
{
        nghttp2_settings_entry settings[] = {
                { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, CALLS_PER_CONNECTION_MAX },
        };
        nghttp2_session_callbacks *callbacks;
        int r;

        if (nghttp2_session_callbacks_new(&callbacks) != 0)
                return -ENOMEM;
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
        nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
        nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
        r = nghttp2_session_server_new(ret, callbacks, peer);
        nghttp2_session_callbacks_del(callbacks);
        if (r != 0)
                return -ENOMEM;
        if (nghttp2_submit_settings(*ret, NGHTTP2_FLAG_NONE, settings, ARRAY_SIZE(settings)) != 0) {
                nghttp2_session_del(*ret);
                return -ENOMEM;
        }
        return 0;
}
