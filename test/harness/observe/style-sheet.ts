/** Eight colours that can be told apart, also by the colour-blind (after Okabe and Ito), on light and on dark. */
const palette = ['#2f7ed8', '#e07b00', '#2a9d5c', '#d1495b', '#8e6bbf', '#00a3b4', '#b8860b', '#7f8c9b'];

const colors = palette
  .map(
    (color, index) =>
      `.line.c${index},.swatch.c${index}{stroke:${color}}.area.c${index},.bar.c${index}{fill:${color}}`,
  )
  .join('');

/** A page of its own colour, so that it can be read wherever it is shown. */
export const styleSheet = `
text{font:11px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#3c434d}
.page{fill:#f1f3f5}.panel{fill:#fff;stroke:#dfe3e8}
.heading{font-size:20px;font-weight:600;fill:#16191d}.caption{font-size:12.5px;fill:#5a6470}
.row{font-size:14px;font-weight:600}.title{font-size:12.5px;font-weight:600;fill:#16191d}
.big{font-size:26px;font-weight:600;fill:#1d6fbf}.axis{font-size:10px;fill:#6b7580}.value{fill:#16191d}
.end{text-anchor:end}.mid{text-anchor:middle}.grid{stroke:#e6e9ed;fill:none}
.line{fill:none;stroke-width:1.5;stroke-linejoin:round}.area{fill-opacity:.3}.swatch{stroke-width:3}.heat{fill:#d1495b}
${colors}
@media (prefers-color-scheme:dark){text{fill:#c3cad3}.page{fill:#111317}.panel{fill:#1b1e24;stroke:#2c3139}
.heading,.title,.value{fill:#eceff3}.caption{fill:#98a2ad}.big{fill:#6db3f2}.axis{fill:#8d97a3}.grid{stroke:#2c3139}}
`;
