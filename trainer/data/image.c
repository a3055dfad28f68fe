/* The libraries' rows go through shrink_image(); their errors come back by longjmp (JPEG) or in words (PNG).
 */
#include "trainer/data/image.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jerror.h>
#include <jpeglib.h>
#include <png.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "trainer/data/pnm.h"
#include "trainer/data/shrink.h"

enum kind { PNM, JPEG, PNG };

static enum kind kind_of(const uint8_t *bytes, size_t size_bytes)
{
        if (size_bytes >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff)
                return JPEG;
        return size_bytes >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0 ? PNG : PNM;
}

static int check_size(size_t height, size_t width, struct err *err)
{
        if (height == 0 || width == 0 || height > IMAGE_PIXELS_MAX / width)
                return err_set(err, -EINVAL, "%zu x %zu pixels: 1 to %zu are possible", height, width,
                               IMAGE_PIXELS_MAX);
        return 0;
}

struct jpeg {
        struct jpeg_decompress_struct info;
        struct jpeg_error_mgr errors;
        struct jpeg_progress_mgr progress;
        jmp_buf out;
        struct err *err;
};

static void jpeg_fails(j_common_ptr info)
{
        struct jpeg *j = info->client_data;
        char words[JMSG_LENGTH_MAX];

        info->err->format_message(info, words);
        (void) err_set(j->err, -EINVAL, "JPEG: %s", words);
        longjmp(j->out, 1);
}

/* Warnings of what is beside the pixels: bytes between markers, a version, words of programs. */
static bool jpeg_is_whole(int message)
{
        return message == JWRN_EXTRANEOUS_DATA || message == JWRN_JFIF_MAJOR || message == JWRN_ADOBE_XFORM ||
               message == JWRN_BOGUS_ICC;
}

/* Any other warning is pixels that are not there. */
static void jpeg_warns(j_common_ptr info, int level)
{
        if (level < 0 && !jpeg_is_whole(info->err->msg_code))
                jpeg_fails(info);
}

/* A few bytes may ask for the same pixels to be refined again and again. */
static void jpeg_goes_on(j_common_ptr info)
{
        struct jpeg *j = info->client_data;

        if (j->info.input_scan_number <= IMAGE_SCANS_MAX)
                return;
        (void) err_set(j->err, -EINVAL, "JPEG: more than %d scans", IMAGE_SCANS_MAX);
        longjmp(j->out, 1);
}

static int jpeg_row(void *context, uint8_t *row, struct err *err)
{
        struct jpeg *j = context;

        (void) err;              /* j has it */
        if (setjmp(j->out) != 0) /* shrink_image() has memory to give back */
                return -EINVAL;
        (void) jpeg_read_scanlines(&j->info, &row, 1);
        return 0;
}

static void jpeg_begin(struct jpeg *j, const uint8_t *bytes, size_t size_bytes)
{
        jpeg_create_decompress(&j->info);
        j->progress.progress_monitor = jpeg_goes_on;
        j->info.progress = &j->progress;
        jpeg_mem_src(&j->info, bytes, (unsigned long) size_bytes);
        (void) jpeg_read_header(&j->info, TRUE);
}

/* @to: NULL = the header is enough */
static int decode_jpeg(const uint8_t *bytes, size_t size_bytes, struct image *image, size_t to_height,
                       size_t to_width, uint8_t *to, struct err *err)
{
        CLEANUP(free_p) struct jpeg *j = calloc(1, sizeof(*j));
        struct shrink shrink;
        int r = -EINVAL;

        if (j == NULL)
                return err_set(err, -ENOMEM, "no memory for a JPEG image");
        j->err = err;
        j->info.err = jpeg_std_error(&j->errors);
        j->info.client_data = j;
        j->errors.error_exit = jpeg_fails;
        j->errors.emit_message = jpeg_warns;
        if (setjmp(j->out) != 0) {
                jpeg_destroy_decompress(&j->info);
                return -EINVAL;
        }
        jpeg_begin(j, bytes, size_bytes);
        if (to == NULL)
                *image = (struct image){ j->info.image_height, j->info.image_width,
                                         j->info.num_components == 1 ? 1 : 3 };
        r = check_size(j->info.image_height, j->info.image_width, err);
        if (r == 0 && to != NULL) {
                j->info.out_color_space = image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
                (void) jpeg_start_decompress(&j->info);
                shrink = (struct shrink){ j->info.output_height, j->info.output_width, image->channels,
                                          jpeg_row, j };
                r = shrink_image(&shrink, to_height, to_width, to, err);
        }
        jpeg_destroy_decompress(&j->info);
        return r;
}

struct whole { /* pixels in memory */
        const uint8_t *next;
        size_t row_bytes;
};

static int whole_row(void *context, uint8_t *row, struct err *err)
{
        struct whole *w = context;

        (void) err;
        memcpy(row, w->next, w->row_bytes);
        w->next += w->row_bytes;
        return 0;
}

static int png_fails(png_image *png, struct err *err)
{
        int r = err_set(err, -EINVAL, "PNG: %s", png->message);

        png_image_free(png);
        return r;
}

static int decode_png(const uint8_t *bytes, size_t size_bytes, struct image *image, size_t to_height,
                      size_t to_width, uint8_t *to, struct err *err)
{
        png_image png = { .version = PNG_IMAGE_VERSION };
        CLEANUP(free_p) uint8_t *pixels = NULL;
        struct whole whole;
        struct shrink shrink;

        if (!png_image_begin_read_from_memory(&png, bytes, size_bytes))
                return png_fails(&png, err);
        if (check_size(png.height, png.width, err) < 0) {
                png_image_free(&png);
                return -EINVAL;
        }
        if (to == NULL) {
                *image = (struct image){ png.height, png.width,
                                         (png.format & PNG_FORMAT_FLAG_COLOR) != 0 ? 3 : 1 };
                png_image_free(&png);
                return 0;
        }
        png.format = image->channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
        pixels = malloc(PNG_IMAGE_SIZE(png));
        if (pixels == NULL) {
                png_image_free(&png);
                return err_set(err, -ENOMEM, "no memory for an image of %u x %u", png.height, png.width);
        }
        /* what is transparent is black */
        if (!png_image_finish_read(&png, &(png_color){ 0, 0, 0 }, pixels, 0, NULL))
                return png_fails(&png, err);
        whole = (struct whole){ pixels, png.width * image->channels };
        shrink = (struct shrink){ png.height, png.width, image->channels, whole_row, &whole };
        return shrink_image(&shrink, to_height, to_width, to, err);
}

static int decode_pnm(const uint8_t *bytes, size_t size_bytes, struct image *image, size_t to_height,
                      size_t to_width, uint8_t *to, struct err *err)
{
        const union {
                const uint8_t *given;
                void *to_read;
        } same = { .given = bytes }; /* which writes nothing */
        CLEANUP(fclose_p) FILE *f = size_bytes > 0 ? fmemopen(same.to_read, size_bytes, "re") : NULL;
        struct pnm pnm;

        if (f == NULL)
                return err_set(err, -EINVAL, "no JPEG, PNG, PGM or PPM image");
        if (pnm_header(f, &pnm, err) < 0)
                return err->code;
        if (check_size(pnm.height, pnm.width, err) < 0)
                return -EINVAL;
        if (to == NULL) {
                *image = (struct image){ pnm.height, pnm.width, pnm.channels };
                return 0;
        }
        if (pnm.channels != image->channels)
                return err_set(err, -EINVAL, "%zu channels, the first image has %zu", pnm.channels,
                               image->channels);
        return pnm_shrink(f, &pnm, to_height, to_width, to, err);
}

static int decode(const uint8_t *bytes, size_t size_bytes, struct image *image, size_t to_height,
                  size_t to_width, uint8_t *to, struct err *err)
{
        switch (kind_of(bytes, size_bytes)) {
        case JPEG:
                return decode_jpeg(bytes, size_bytes, image, to_height, to_width, to, err);
        case PNG:
                return decode_png(bytes, size_bytes, image, to_height, to_width, to, err);
        case PNM:
                break;
        }
        return decode_pnm(bytes, size_bytes, image, to_height, to_width, to, err);
}

int image_header(const uint8_t *bytes, size_t size_bytes, struct image *ret, struct err *err)
{
        return decode(bytes, size_bytes, ret, 0, 0, NULL, err);
}

int image_decode(const uint8_t *bytes, size_t size_bytes, size_t to_height, size_t to_width, size_t channels,
                 uint8_t *to, struct err *err)
{
        struct image image = { .channels = channels };

        return decode(bytes, size_bytes, &image, to_height, to_width, to, err);
}

bool image_has_name(const char *name)
{
        static const char *const ends[] = { ".pgm", ".ppm", ".jpg", ".jpeg", ".png" };
        size_t length = strlen(name);

        /* ImageNet's files end in .JPEG, a camera's in .JPG */
        for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
                if (length >= strlen(ends[i]) && strcasecmp(name + length - strlen(ends[i]), ends[i]) == 0)
                        return true;
        return false;
}
