// Style sheets as vite gives them: for their effect, or as their text.
declare module "*.css";
declare module "*.css?inline" {
  const text: string;
  export default text;
}
