"""Lines with labelled axes, as SVG."""
import html
import math

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 176, 34, 48
COLOURS = ("#4269d0", "#d1662a", "#3ca951", "#a463f2", "#9c6b4e", "#6b7280")


class Axis:
    """From numbers to pixels, straight or by powers of two."""

    def __init__(self, numbers, first, last, powers, from_zero):
        self.scale = math.log2 if powers else float
        self.low, self.high = self.scale(0 if from_zero and not powers else min(numbers)), self.scale(max(numbers))
        self.high = self.high if self.high > self.low else self.low + 1
        self.first, self.last, self.powers = first, last, powers

    def at(self, number):
        return self.first + (self.last - self.first) * (self.scale(number) - self.low) / (self.high - self.low)

    def ticks(self):
        if self.powers:
            low, high = math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9)
            return [2.0 ** power for power in range(low, high + 1, max(1, (high - low) // 8 + 1))]
        step = 10 ** math.floor(math.log10(self.high - self.low))
        step *= next(times for times in (0.1, 0.2, 0.5, 1, 2) if (self.high - self.low) / (step * times) <= 6)
        return [step * number for number in range(math.ceil(self.low / step), math.floor(self.high / step + 1e-9) + 1)]


def _text(x, y, text, anchor="middle", more=""):
    return '<text x="%.1f" y="%.1f" text-anchor="%s"%s>%s</text>' % (x, y, anchor, more, html.escape(text))


def _label(number):
    return "{:,.10g}".format(number)


def lines(title, across, up, series, powers_across=False, powers_up=False, dashed=()):
    """`series`: name → [(x, y), …]. Names in `dashed` are drawn so, and grey."""
    points = [point for line in series.values() for point in line]
    x_axis = Axis([x for x, _ in points], LEFT, WIDTH - RIGHT, powers_across, from_zero=False)
    y_axis = Axis([y for _, y in points], HEIGHT - BOTTOM, TOP, powers_up, from_zero=True)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">'
           % (WIDTH, HEIGHT), '<rect width="100%" height="100%" fill="#ffffff"/>',
           _text(LEFT, 20, title, "start", ' font-weight="bold"')]
    for number in y_axis.ticks():
        y = y_axis.at(number)
        out.append('<path d="M%d %.1fH%d" stroke="#dddddd"/>' % (LEFT, y, WIDTH - RIGHT))
        out.append(_text(LEFT - 6, y + 4, _label(number), "end"))
    for number in x_axis.ticks():
        x = x_axis.at(number)
        out.append('<path d="M%.1f %dv4" stroke="#444444"/>' % (x, HEIGHT - BOTTOM))
        out.append(_text(x, HEIGHT - BOTTOM + 17, _label(number)))
    out.append('<path d="M%d %dV%dH%d" fill="none" stroke="#444444"/>' % (LEFT, TOP, HEIGHT - BOTTOM, WIDTH - RIGHT))
    out.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, across))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    out.append(_text(16, middle, up, "middle", ' transform="rotate(-90 16 %.1f)"' % middle))
    out += _lines(series, x_axis, y_axis, dashed)
    return "\n".join(out + ["</svg>"]) + "\n"


def _lines(series, x_axis, y_axis, dashed):
    """Lines, their points, and their names at their ends, moved apart where they would overlap."""
    out, ends = [], []
    for (name, line), colour in zip(series.items(), COLOURS):
        style = 'stroke="#999999" stroke-dasharray="5 4"' if name in dashed else 'stroke="%s" stroke-width="2"' % colour
        places = [(x_axis.at(x), y_axis.at(y)) for x, y in line]
        out.append('<polyline fill="none" %s points="%s"/>' % (style, " ".join("%.1f,%.1f" % place for place in places)))
        if name not in dashed:
            out += ['<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>' % (*place, colour) for place in places]
        ends.append([places[-1][1], name, "#777777" if name in dashed else colour])
    ends.sort()
    for above, below in zip(ends, ends[1:]):
        below[0] = max(below[0], above[0] + 14)
    return out + [_text(WIDTH - RIGHT + 8, y + 4, name, "start", ' fill="%s"' % colour) for y, name, colour in ends]
