"""Generated images that can be learned: ten classes, each a smooth picture of its own that is hardly seen under noise. The
same for the same seed."""
import random
import struct

CLASSES = 10
PICTURES_SEED = 7   # the classes are the same in all files
AMPLITUDE = 20      # of the pictures; the noise has 127, so that a few dozen updates begin to tell classes apart
RECORD_BYTES = 1 + 3 * 32 * 32  # of CIFAR-10's binary files: a label, then red, green and blue


def _picture(shape, random_numbers):
    """One class: in each channel a grid of 5 × 5 random heights, with straight lines in between."""
    channels, height, width = shape
    pixels = bytearray()
    for _ in range(channels):
        grid = [[random_numbers.uniform(-1, 1) for _ in range(5)] for _ in range(5)]
        for y in range(height):
            row, down = divmod(4 * y / height, 1)
            above, below = grid[int(row)], grid[int(row) + 1]
            line = [a * (1 - down) + b * down for a, b in zip(above, below)]
            for x in range(width):
                column, right = divmod(4 * x / width, 1)
                value = line[int(column)] * (1 - right) + line[int(column) + 1] * right
                pixels.append(int(63.5 + AMPLITUDE * value))
    return int.from_bytes(pixels, "little")


def images(shape, rows, seed):
    """Labels and pixels. A pixel is the sum of two numbers below 128, so that whole images can be added as numbers."""
    size = shape[0] * shape[1] * shape[2]
    pictures_random = random.Random(PICTURES_SEED)
    pictures = [_picture(shape, pictures_random) for _ in range(CLASSES)]
    below_128 = int.from_bytes(b"\x7f" * size, "little")
    rows_random = random.Random(seed)
    for _ in range(rows):
        label = rows_random.randrange(CLASSES)
        yield label, (pictures[label] + (rows_random.getrandbits(8 * size) & below_128)).to_bytes(size, "little")


def write_cifar(path, rows, seed):
    """A file like CIFAR-10's, of which several can be read together."""
    with open(path, "wb") as file:
        for label, pixels in images((3, 32, 32), rows, seed):
            file.write(bytes([label]) + pixels)


def write_idx(images_path, labels_path, shape, rows, seed):
    """Images of another size, and their labels beside them."""
    labels = bytearray()
    with open(images_path, "wb") as file:
        file.write(struct.pack(">BBBB4I", 0, 0, 8, 4, rows, *shape))
        for label, pixels in images(shape, rows, seed):
            labels.append(label)
            file.write(pixels)
    labels_path.write_bytes(struct.pack(">BBBBI", 0, 0, 8, 1, rows) + labels)
