/* The five bytes before each message, and the headers that gRPC adds to those of HTTP/2. */
#include "io/grpc/grpc.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

/* clang-format off */
static const char *const status_names[] = {
        [GRPC_OK]                  = "OK",
        [GRPC_CANCELLED]           = "CANCELLED",
        [GRPC_UNKNOWN]             = "UNKNOWN",
        [GRPC_INVALID_ARGUMENT]    = "INVALID_ARGUMENT",
        [GRPC_DEADLINE_EXCEEDED]   = "DEADLINE_EXCEEDED",
        [GRPC_NOT_FOUND]           = "NOT_FOUND",
        [GRPC_ALREADY_EXISTS]      = "ALREADY_EXISTS",
        [GRPC_PERMISSION_DENIED]   = "PERMISSION_DENIED",
        [GRPC_RESOURCE_EXHAUSTED]  = "RESOURCE_EXHAUSTED",
        [GRPC_FAILED_PRECONDITION] = "FAILED_PRECONDITION",
        [GRPC_ABORTED]             = "ABORTED",
        [GRPC_OUT_OF_RANGE]        = "OUT_OF_RANGE",
        [GRPC_UNIMPLEMENTED]       = "UNIMPLEMENTED",
        [GRPC_INTERNAL]            = "INTERNAL",
        [GRPC_UNAVAILABLE]         = "UNAVAILABLE",
        [GRPC_DATA_LOSS]           = "DATA_LOSS",
        [GRPC_UNAUTHENTICATED]     = "UNAUTHENTICATED",
};

/* gRPC's own table of what a proxy's or a plain web server's answer stands for */
static const struct {
        unsigned http;
        enum grpc_status status;
} http_statuses[] = {
        { 400, GRPC_INTERNAL },    { 401, GRPC_UNAUTHENTICATED }, { 403, GRPC_PERMISSION_DENIED },
        { 404, GRPC_UNIMPLEMENTED }, { 429, GRPC_UNAVAILABLE },   { 502, GRPC_UNAVAILABLE },
        { 503, GRPC_UNAVAILABLE }, { 504, GRPC_UNAVAILABLE },
};

static const struct {
        char unit;
        uint64_t nsec;
} timeout_units[] = {
        { 'n', 1 }, { 'u', 1000 }, { 'm', 1000000 }, { 'S', 1000000000 }, { 'M', 60000000000 }, { 'H', 3600000000000 },
};
/* clang-format on */
static_assert(ARRAY_SIZE(status_names) == GRPC_STATUS_COUNT, "a status without a name");

const char *grpc_status_name(enum grpc_status status)
{
        return (unsigned) status < GRPC_STATUS_COUNT ? status_names[status] : "an unknown status";
}

bool grpc_header_is(const char *header, const uint8_t *name, size_t size)
{
        return strlen(header) == size && memcmp(header, name, size) == 0;
}

enum grpc_status grpc_status_of_http(unsigned http_status)
{
        for (size_t i = 0; i < ARRAY_SIZE(http_statuses); i++)
                if (http_statuses[i].http == http_status)
                        return http_statuses[i].status;
        return GRPC_UNKNOWN;
}

static int begin_message(struct grpc_deframer *d)
{
        size_t size = (size_t) d->header[1] << 24 | (size_t) d->header[2] << 16 | (size_t) d->header[3] << 8 |
                      d->header[4];

        if (d->header[0] == 1)
                return -EPROTONOSUPPORT;
        if (d->header[0] != 0)
                return -EBADMSG;
        if (size > d->max_bytes)
                return -EMSGSIZE;
        d->size_bytes = size;
        d->have_bytes = 0;
        return 0;
}

static int make_room(struct grpc_deframer *d, size_t more)
{
        size_t want = d->have_bytes + more, capacity = d->capacity_bytes == 0 ? 512 : d->capacity_bytes;
        uint8_t *body;

        if (want <= d->capacity_bytes)
                return 0;
        while (capacity < want)
                capacity *= 2;
        body = realloc(d->body, capacity);
        if (body == NULL)
                return -ENOMEM;
        d->body = body;
        d->capacity_bytes = capacity;
        return 0;
}

static size_t take(const uint8_t **data, size_t *size, uint8_t *to, size_t want)
{
        size_t n = *size < want ? *size : want;

        if (n > 0)
                memcpy(to, *data, n);
        *data += n;
        *size -= n;
        return n;
}

int grpc_deframer_feed(struct grpc_deframer *d, const uint8_t **data, size_t *size)
{
        size_t more;
        int r;

        if (d->header_bytes < GRPC_FRAME_BYTES) {
                d->header_bytes +=
                        take(data, size, d->header + d->header_bytes, GRPC_FRAME_BYTES - d->header_bytes);
                if (d->header_bytes < GRPC_FRAME_BYTES)
                        return 0;
                r = begin_message(d);
                if (r < 0)
                        return r;
        }
        more = d->size_bytes - d->have_bytes < *size ? d->size_bytes - d->have_bytes : *size;
        r = make_room(d, more + 1);
        if (r < 0)
                return r;
        d->have_bytes += take(data, size, d->body + d->have_bytes, more);
        if (d->have_bytes < d->size_bytes)
                return 0;
        d->header_bytes = 0;
        return GRPC_FRAME_MESSAGE;
}

bool grpc_deframer_partial(const struct grpc_deframer *d)
{
        return d->header_bytes > 0;
}

void grpc_deframer_free(struct grpc_deframer *d)
{
        free(d->body);
        d->body = NULL;
        d->capacity_bytes = d->have_bytes = d->size_bytes = d->header_bytes = 0;
}

uint8_t *grpc_frame(const uint8_t *message, size_t size_bytes, size_t *ret_bytes)
{
        uint8_t *frame;

        if (size_bytes > UINT32_MAX - GRPC_FRAME_BYTES)
                return NULL;
        frame = malloc(size_bytes + GRPC_FRAME_BYTES);
        if (frame == NULL)
                return NULL;
        frame[0] = 0;
        frame[1] = (uint8_t) (size_bytes >> 24);
        frame[2] = (uint8_t) (size_bytes >> 16);
        frame[3] = (uint8_t) (size_bytes >> 8);
        frame[4] = (uint8_t) size_bytes;
        if (size_bytes > 0)
                memcpy(frame + GRPC_FRAME_BYTES, message, size_bytes);
        *ret_bytes = size_bytes + GRPC_FRAME_BYTES;
        return frame;
}

int grpc_timeout_parse(const char *text, size_t size, uint64_t *ret_usec)
{
        char digits[9];
        uint64_t value;

        if (size < 2 || size > 9)
                return -EINVAL;
        memcpy(digits, text, size - 1);
        digits[size - 1] = '\0';
        if (text_parse_uint64(digits, &value) < 0)
                return -EINVAL;
        for (size_t i = 0; i < ARRAY_SIZE(timeout_units); i++)
                if (timeout_units[i].unit == text[size - 1]) {
                        /* 99,999,999 hours in ns do not fit 64 bits: count in microseconds from 1 us up */
                        if (timeout_units[i].nsec < 1000)
                                *ret_usec = (value + 999) / 1000;
                        else
                                *ret_usec = value * (timeout_units[i].nsec / 1000);
                        return 0;
                }
        return -EINVAL;
}

void grpc_timeout_format(uint64_t usec, char *ret, size_t ret_bytes)
{
        for (size_t i = 1; i < ARRAY_SIZE(timeout_units); i++) {
                uint64_t unit = timeout_units[i].nsec / 1000, value = usec / unit + (usec % unit != 0);

                if (value <= 99999999) {
                        (void) text_format(ret, ret_bytes, "%" PRIu64 "%c", value, timeout_units[i].unit);
                        return;
                }
        }
        (void) text_copy(ret, ret_bytes, "99999999H");
}

void grpc_sentence_encode(const char *sentence, char *ret, size_t ret_bytes)
{
        static const char hex[] = "0123456789ABCDEF";
        size_t n = 0;

        for (const unsigned char *c = (const unsigned char *) sentence; *c != '\0' && n + 4 <= ret_bytes;
             c++) {
                if (*c >= 0x20 && *c < 0x7f && *c != '%') {
                        ret[n++] = (char) *c;
                        continue;
                }
                ret[n++] = '%';
                ret[n++] = hex[*c >> 4];
                ret[n++] = hex[*c & 15];
        }
        ret[n] = '\0';
}

static int hex_digit(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

void grpc_sentence_decode(const char *encoded, size_t size, char *ret, size_t ret_bytes)
{
        size_t n = 0;

        for (size_t i = 0; i < size && n + 1 < ret_bytes; i++) {
                int high = -1, low = -1;
                char c = encoded[i];

                if (c == '%' && i + 2 < size) {
                        high = hex_digit(encoded[i + 1]);
                        low = hex_digit(encoded[i + 2]);
                }
                if (high >= 0 && low >= 0) {
                        c = (char) (high << 4 | low);
                        i += 2;
                }
                /* one line for a log, whatever the peer wrote */
                if ((unsigned char) c < 0x20 || c == 0x7f)
                        c = ' ';
                ret[n++] = c;
        }
        ret[n] = '\0';
}
